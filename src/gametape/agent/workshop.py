"""What surrounds an agent at work on a task: its starting tree, its sandbox, its tools, its first words."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gametape.agent.context import opening_text, standing_instructions, system_text
from gametape.agent.tools import standard_tools
from gametape.agent.work import Work
from gametape.core.errors import BadInput
from gametape.core.protocols import Notes, Tool
from gametape.sandbox.backend import Spec
from gametape.sandbox.policy import Policy
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.verify.interpreter import prefixes, strangers_of
from gametape.verify.subject import Subject
from gametape.verify.toolbox import Toolbox


def import_start(store: SnapshotStore, subject: Subject, durably: bool = True) -> str:
    """The agent's starting tree as a snapshot."""
    with tempfile.TemporaryDirectory(prefix="gametape-start-") as scratch:
        start = Path(scratch) / "workspace"
        start.mkdir()
        subject.start.write_to(start)
        return store.import_tree(start, durably)


def sandbox_of(subject: Subject) -> Spec:
    """The agent's sandbox: the workspace and the task's own interpreter, first on the path."""
    wanted, python = subject.task.limits, subject.interpreter
    policy = Policy().with_limits(memory_mb=wanted.memory_mb, disk_mb=wanted.disk_mb)
    if python:
        path = f"{python.parent}:/usr/local/bin:/usr/bin:/bin"
        shown = {"read_only": prefixes(python), "hidden": strangers_of(python), "environment": (("PATH", path),)}
        policy = policy.model_copy(update={"python": False, **shown})
    return Spec(policy=policy)


def tools_for(
    subject: Subject,
    work: Work,
    home: Path,
    longest: float,
    notes: Notes | None = None,
    chosen: frozenset[str] | None = None,
) -> Sequence[Tool]:
    """The standard tools, or only the `chosen` ones of them and `finish`."""
    every = standard_tools(
        work=work,
        notes=notes,
        python=str(subject.interpreter or sys.executable),
        subject=subject,
        toolbox=Toolbox(home),
        longest=longest,
    )
    if chosen is None:
        return every
    if unknown := chosen - {tool.name for tool in every}:
        known = ", ".join(tool.name for tool in every)
        raise BadInput(f"there is no tool {min(unknown)!r}; the tools are: {known}")
    return [tool for tool in every if tool.name in chosen or tool.name == "finish"]


def first_words(subject: Subject, forbidden: str = "") -> tuple[str, str]:
    """What stands for the whole rollout, and what there is to do."""
    system = system_text(standing_instructions(subject.start.files), forbidden)
    taken = ", ".join(subject.task.source_paths)
    facts = [f"The tests run with `python -m pytest`. Only these paths are taken from your work: {taken}."]
    return system, opening_text(subject.task.instruction, subject.start, facts)
