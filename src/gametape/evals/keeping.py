"""The record of a played attempt as a trajectory file."""

import re
from pathlib import Path

from gametape import __version__
from gametape.agent.playing import Played
from gametape.agent.recording import final_metrics
from gametape.core.atif import Agent, Extra
from gametape.core.trajectory import ATIF_VERSION, Trajectory
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
    told: Extra = {"attempt_id": name, "task": assignment.name, "reason": played.over.reason}
    told["outcome"] = "passed" if judged and judged.passed else played.over.outcome or "failed"
    if judged:
        told["reward"] = judged.reward
    if judged and judged.verdict:
        told["verdict"] = judged.verdict.model_dump(mode="json")
    tools = [{"type": "function", "function": tool.definition} for tool in assignment.tools()]
    return Trajectory(
        schema_version=ATIF_VERSION,
        session_id=name,
        trajectory_id=name,
        agent=Agent(name="gametape", version=__version__, model_name=model_name, tool_definitions=tools),
        steps=list(played.steps),
        final_metrics=final_metrics(played.spent, len(played.steps)),
        extra=told,
    )
