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
    if not played.steps:
        return
    assignment, judged = played.assignment, played.judged
    name = re.sub(r"[^\w.+-]+", "-", f"{assignment.name}-{number}")
    told: Extra = {"attempt_id": name, "task": assignment.name, "reason": played.over.reason}
    told["outcome"] = "passed" if judged and judged.passed else played.over.outcome or "failed"
    if judged:
        told["reward"] = judged.reward
    if judged and judged.verdict:
        told["verdict"] = judged.verdict.model_dump(mode="json")
    tools = [{"type": "function", "function": tool.definition} for tool in assignment.tools()]
    agent = Agent(name="gametape", version=__version__, model_name=model.name, tool_definitions=tools)
    directory.mkdir(parents=True, exist_ok=True)
    save(
        directory / f"{name}.json",
        Trajectory(
            schema_version=ATIF_VERSION,
            session_id=name,
            trajectory_id=name,
            agent=agent,
            steps=list(played.steps),
            final_metrics=final_metrics(played.spent, len(played.steps)),
            extra=told,
        ),
    )
