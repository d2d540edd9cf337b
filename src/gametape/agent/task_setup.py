"""What surrounds an agent at work on a task: its starting tree, its sandbox, its tools, its first words."""

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gametape.agent.agent_state import AgentState
from gametape.agent.constraints import Constraints
from gametape.agent.prompts import build_system_prompt, build_user_prompt, standing_instructions
from gametape.agent.tools import standard_tools
from gametape.agent.tools.finish import AnswerTool
from gametape.core.errors import BadInput
from gametape.core.protocols import NoteStore, Tool
from gametape.record.loaded_task import LoadedTask
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.policy import SandboxPolicy
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.verify.interpreter import hidden_packages, interpreter_prefixes
from gametape.verify.static_analysis.analyzer import StaticAnalyzer


def snapshot_start(store: SnapshotStore, subject: LoadedTask, durably: bool = True) -> str:
    """The agent's starting tree as a snapshot."""
    with tempfile.TemporaryDirectory(prefix="gametape-start-") as scratch:
        start = Path(scratch) / "workspace"
        start.mkdir()
        subject.start.write_to(start)
        return store.import_tree(start, durably)


def task_sandbox_spec(subject: LoadedTask) -> SandboxSpec:
    """The agent's sandbox: the workspace and the task's own interpreter, first on the path."""
    wanted, python = subject.task.limits, subject.interpreter
    policy = SandboxPolicy().with_limits(memory_mb=wanted.memory_mb, disk_mb=wanted.disk_mb)
    if python:
        path = f"{python.parent}:/usr/local/bin:/usr/bin:/bin"
        shown = {
            "read_only": interpreter_prefixes(python),
            "hidden": hidden_packages(python),
            "environment": (("PATH", path),),
        }
        policy = policy.model_copy(update={"python": False, **shown})
    return SandboxSpec(policy=policy)


def task_tools(
    subject: LoadedTask,
    state: AgentState,
    home: Path,
    max_seconds: float,
    notes: NoteStore | None = None,
    allowed: frozenset[str] | None = None,
) -> Sequence[Tool]:
    """The standard tools, or only the `chosen` ones of them and `finish`."""
    every = standard_tools(
        state=state,
        notes=notes,
        python=str(subject.interpreter or sys.executable),
        subject=subject,
        toolbox=StaticAnalyzer(home),
        max_seconds=max_seconds,
    )
    if allowed is None:
        return every
    if unknown := allowed - {tool.name for tool in every}:
        known = ", ".join(tool.name for tool in every)
        raise BadInput(f"there is no tool {min(unknown)!r}; the tools are: {known}")
    return [tool for tool in every if tool.name in allowed or tool.name == "finish"]


def initial_prompts(subject: LoadedTask, constraints: str = "") -> tuple[str, str]:
    """What stands for the whole rollout, and what there is to do."""
    system = build_system_prompt(standing_instructions(subject.start.files), constraints)
    taken = ", ".join(subject.task.source_paths)
    facts = [f"The tests run with `python -m pytest`. Only these paths are taken from your work: {taken}."]
    return system, build_user_prompt(subject.task.instruction, subject.start, facts)


_ANSWER_SYSTEM_PROMPT = "You write Python functions. Answer with one ```python block that holds the whole file."
_TURNS_TO_ANSWER = 2
"""The second is for whoever forgot the block."""


@dataclass(frozen=True)
class TaskPresentation:
    """What is said first, how many turns there are, and the tools over what the agent has in hand."""

    system_prompt: str
    user_prompt: str
    max_turns: int
    tools: Callable[[AgentState], Sequence[Tool]]
    constraints: Constraints = field(default_factory=Constraints)


def present_as_work(
    subject: LoadedTask,
    home: Path,
    max_turns: int = 50,
    constraints: Constraints | None = None,
    tool_seconds: float = 120.0,
) -> TaskPresentation:
    """The task as `gametape solve` puts it, with the standard tools and without a memory."""
    forbidden = constraints or Constraints()
    system, opening = initial_prompts(subject, forbidden.describe())
    return TaskPresentation(
        system, opening, max_turns, lambda work: task_tools(subject, work, home, tool_seconds), constraints=forbidden
    )


def present_as_question(subject: LoadedTask) -> TaskPresentation:
    """The instruction alone, to be answered with the task's one source file. A model too small to work with tools can
    do that. Raises `BadInput` for tasks that are about more than a file."""
    path, *more = subject.task.source_paths
    if more or path not in subject.start:
        raise BadInput(f"{subject.task.name}: only a task about one file can be put as a question")
    return TaskPresentation(
        _ANSWER_SYSTEM_PROMPT, subject.task.instruction.strip(), _TURNS_TO_ANSWER, lambda _work: [AnswerTool(path)]
    )
