"""Write an episode as a trajectory file."""

import re
from pathlib import Path

from gametape.agent.episode import Episode
from gametape.agent.recorder import final_metrics, new_trajectory
from gametape.core.atif import Extra
from gametape.core.trajectory import Trajectory
from gametape.engines.conversation import Model
from gametape.record.trajectory_file import save_trajectory


def save_episode(episode: Episode, model: Model, number: int, directory: Path) -> None:
    """Write `DIRECTORY/TASK-NUMBER.json`; write nothing for an episode that has no steps."""
    if episode.steps:
        name = re.sub(r"[^\w.+-]+", "-", f"{episode.environment.name}-{number}")
        directory.mkdir(parents=True, exist_ok=True)
        save_trajectory(directory / f"{name}.json", episode_to_trajectory(episode, model.name, name))


def episode_to_trajectory(episode: Episode, model_name: str, trajectory_id: str) -> Trajectory:
    """The episode as a trajectory, with its outcome and, where there is one, its verdict."""
    environment, score = episode.environment, episode.score
    extra: Extra = {"task": environment.name, "reason": episode.end.reason}
    extra["outcome"] = "passed" if score and score.passed else episode.end.outcome or "failed"
    if score:
        extra["reward"] = score.reward
    if score and score.verdict:
        extra["verdict"] = score.verdict.model_dump(mode="json")
    record = new_trajectory(trajectory_id, model_name, extra, environment.tools(), steps=episode.steps)
    return record.model_copy(update={"final_metrics": final_metrics(episode.usage, len(episode.steps))})
