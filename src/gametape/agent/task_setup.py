"""A task as an agent gets it: the starting snapshot, the sandbox, the tools and the first prompts."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gametape.agent.agent_state import AgentState
from gametape.agent.constraints import Constraints
from gametape.agent.limits import RolloutLimits
from gametape.agent.prompts import build_system_prompt, build_user_prompt, standing_instructions
from gametape.agent.tools import standard_tools
from gametape.agent.tools.finish import AnswerTool
from gametape.core.errors import BadInput
from gametape.core.protocols import NoteStore, Tool
from gametape.record.loaded_task import LoadedTask
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.policy import SandboxPolicy
from gametape.sandbox.snapshots.cleanup import scratch_directory
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.verify.interpreter import hidden_packages, interpreter_prefixes
from gametape.verify.layers.profiles import Profile
from gametape.verify.static_analysis.analyzer import StaticAnalyzer

_MAX_OUTPUT_BYTES = 8_000_000
"""A command that prints more is ended. The model sees much less; the end of what was printed is what it needs."""


def snapshot_start(store: SnapshotStore, task: LoadedTask, durably: bool = True) -> str:
    """Import the task's starting tree as a snapshot."""
    with scratch_directory("gametape-start-") as scratch:
        start = scratch / "workspace"
        start.mkdir()
        task.start.write_to(start)
        return store.import_tree(start, durably)


def task_sandbox_spec(task: LoadedTask) -> SandboxSpec:
    """The agent's sandbox, with the task's own interpreter first on the path."""
    limits, python = task.task.limits, task.interpreter
    policy = SandboxPolicy().with_limits(
        memory_mb=limits.memory_mb, disk_mb=limits.disk_mb, output_bytes=_MAX_OUTPUT_BYTES
    )
    if python:
        path = f"{python.parent}:/usr/local/bin:/usr/bin:/bin"
        visible = {
            "read_only": interpreter_prefixes(python),
            "hidden": hidden_packages(python),
            "environment": (("PATH", path),),
        }
        policy = policy.model_copy(update={"python": False, **visible})
    return SandboxSpec(policy=policy)


def task_tools(
    task: LoadedTask,
    state: AgentState,
    home: Path,
    max_seconds: float,
    notes: NoteStore | None = None,
    allowed: frozenset[str] | None = None,
    history: bool = False,
) -> Sequence[Tool]:
    """The standard tools, or only the `allowed` ones and `finish`. `history` adds a look at the git history."""
    tools = standard_tools(
        state=state,
        notes=notes,
        python=str(task.interpreter or sys.executable),
        task=task,
        analyzer=StaticAnalyzer(home),
        max_seconds=max_seconds,
        history=history,
    )
    if allowed is None:
        return tools
    if unknown := allowed - {tool.name for tool in tools}:
        known = ", ".join(tool.name for tool in tools)
        raise BadInput(f"there is no tool {min(unknown)!r}; the tools are: {known}")
    return [tool for tool in tools if tool.name in allowed or tool.name == "finish"]


def initial_prompts(
    task: LoadedTask, constraints: str = "", profile: Profile = "full", budget: str = "", hosts: Sequence[str] = ()
) -> tuple[str, str]:
    """The system prompt and the user prompt, which says what counts under this profile, and the agent's budget."""
    system = build_system_prompt(standing_instructions(task.start.files), constraints, hosts=hosts)
    facts = [" ".join(what_counts(task, profile)), *([budget] if budget else [])]
    return system, build_user_prompt(task.task.instruction, task.start, facts)


def what_counts(task: LoadedTask, profile: Profile) -> list[str]:
    """What the verifier will look at, in sentences for the agent."""
    facts = [
        "The tests run with `python -m pytest`.",
        f"Only these paths are taken from your work: {', '.join(task.task.source_paths)}.",
    ]
    if task.task.tests.held_out:
        facts.append("Tests that you cannot see are run as well.")
    if task.task.architecture is not None:
        facts.append("The structure of the code is checked: which modules import which.")
    if profile == "full":
        facts.append("New type errors (mypy) and lint findings (ruff) in the files you change lower the score.")
    return facts


def limits_for_task(limits: RolloutLimits, task: LoadedTask) -> RolloutLimits:
    """The same limits, with time for a command that takes as long as the task's verification may."""
    seconds = max(limits.tool_seconds, task.task.limits.verifier_seconds or 0.0)
    return limits.model_copy(update={"tool_seconds": seconds})


_ANSWER_SYSTEM_PROMPT = "You write Python functions. Answer with one ```python block that holds the whole file."
_TURNS_TO_ANSWER = 2
"""The second turn is for a model that forgot the code block."""


@dataclass(frozen=True)
class TaskPresentation:
    """The prompts, the number of turns, and the tools over an agent's state."""

    system_prompt: str
    user_prompt: str
    max_turns: int
    tools: Callable[[AgentState], Sequence[Tool]]
    constraints: Constraints = field(default_factory=Constraints)
    tool_seconds: float = RolloutLimits().tool_seconds
    """What one tool call may take."""


def present_as_work(
    task: LoadedTask,
    home: Path,
    max_turns: int = RolloutLimits().turns,
    constraints: Constraints | None = None,
    profile: Profile = "full",
) -> TaskPresentation:
    """The task as `gametape solve` presents it: with the standard tools, but without notes and budgets."""
    constraints = constraints or Constraints()
    system, user = initial_prompts(task, constraints.describe(), profile)
    seconds = limits_for_task(RolloutLimits(), task).tool_seconds
    return TaskPresentation(
        system, user, max_turns, lambda state: task_tools(task, state, home, seconds), constraints, seconds
    )


def present_as_question(task: LoadedTask) -> TaskPresentation:
    """The instruction alone, answered with the task's one source file: for models too small to work with tools. Raises
    `BadInput` for tasks with more than one source file."""
    path, *more = task.task.source_paths
    if more or path not in task.start:
        raise BadInput(f"{task.task.name}: only a task about one file can be presented as a question")
    return TaskPresentation(
        _ANSWER_SYSTEM_PROMPT, task.task.instruction.strip(), _TURNS_TO_ANSWER, lambda _state: [AnswerTool(path)]
    )
