"""The record of a played attempt as a trajectory file."""

import re
from pathlib import Path

from gametape.agent.playing import Played
from gametape.agent.recording import final_metrics, new_record
from gametape.core.atif import Extra
from gametape.core.trajectory import Trajectory
from gametape.engines.conversation import Model
from gametape.record.files import save


def save_played(played: Played, model: Model, number: int, directory: Path) -> None:
    """Write the attempt below a directory, under the name of its task and its number; nothing if it never began."""
    if played.steps:
        name = re.sub(r"[^\w.+-]+", "-", f"{played.assignment.name}-{number}")
        directory.mkdir(parents=True, exist_ok=True)
        save(directory / f"{name}.json", trajectory_of(played, model.name, name))


def trajectory_of(played: Played, model_name: str, name: str) -> Trajectory:
    """With its outcome, and the verdict where there is one."""
    assignment, judged = played.assignment, played.judged
    told: Extra = {"task": assignment.name, "reason": played.over.reason}
    told["outcome"] = "passed" if judged and judged.passed else played.over.outcome or "failed"
    if judged:
        told["reward"] = judged.reward
    if judged and judged.verdict:
        told["verdict"] = judged.verdict.model_dump(mode="json")
    record = new_record(name, model_name, told, assignment.tools(), steps=played.steps)
    return record.model_copy(update={"final_metrics": final_metrics(played.spent, len(played.steps))})
