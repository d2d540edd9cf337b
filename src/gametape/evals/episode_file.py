"""The record of a played attempt as a trajectory file."""

import re
from pathlib import Path

from gametape.agent.episode import Episode
from gametape.agent.recorder import final_metrics, new_trajectory
from gametape.core.atif import Extra
from gametape.core.trajectory import Trajectory
from gametape.engines.conversation import Model
from gametape.record.trajectory_file import save_trajectory


def save_episode(episode: Episode, model: Model, number: int, directory: Path) -> None:
    """Write the attempt below a directory, under the name of its task and its number; nothing if it never began."""
    if episode.steps:
        name = re.sub(r"[^\w.+-]+", "-", f"{episode.environment.name}-{number}")
        directory.mkdir(parents=True, exist_ok=True)
        save_trajectory(directory / f"{name}.json", episode_to_trajectory(episode, model.name, name))


def episode_to_trajectory(episode: Episode, model_name: str, trajectory_id: str) -> Trajectory:
    """With its outcome, and the verdict where there is one."""
    environment, judged = episode.environment, episode.score
    told: Extra = {"task": environment.name, "reason": episode.end.reason}
    told["outcome"] = "passed" if judged and judged.passed else episode.end.outcome or "failed"
    if judged:
        told["reward"] = judged.reward
    if judged and judged.verdict:
        told["verdict"] = judged.verdict.model_dump(mode="json")
    record = new_trajectory(trajectory_id, model_name, told, environment.tools(), steps=episode.steps)
    return record.model_copy(update={"final_metrics": final_metrics(episode.usage, len(episode.steps))})
