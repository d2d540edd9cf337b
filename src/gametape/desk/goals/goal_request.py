"""Creates a goal: pins the workspace, measures the baseline, and writes both. The workspace is only read."""

import os
import posixpath
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gametape.agent.allowed_hosts import check_hosts
from gametape.agent.constraints import Constraints
from gametape.core.errors import BadInput
from gametape.desk.goals import branch
from gametape.desk.goals.baseline import GoalBaseline, measure_baseline
from gametape.desk.goals.deciding_files import FileRoles
from gametape.desk.goals.goal import Goal, GoalDirectory, goal_directory, new_goal_id
from gametape.desk.goals.held_out import HeldOutTests, read_held_out
from gametape.desk.goals.history import copy_history
from gametape.desk.goals.missing_modules import check_modules
from gametape.desk.goals.success_command import read_command
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.model_aliases import absolute_model_name
from gametape.engines.model_names import check_model_name
from gametape.record.atomic import write_atomically
from gametape.record.source_tree import SourceTree
from gametape.sandbox.snapshots.cleanup import remove_tree
from gametape.tasks.mining.project_layout.source_reader import read_project_source
from gametape.verify.interpreter import interpreter_prefixes
from gametape.verify.runner import ZygotePool

_ENVIRONMENTS = (".venv", "venv")
_PYTHON = re.compile(r"(python|pypy)[\d.]*")


@dataclass(frozen=True)
class GoalRequest:
    """The request for a goal, as the command line gives it."""

    workspace: Path
    success: str
    model: str
    instruction: str = ""
    budget_tokens: int | None = None
    deadline: float | None = None
    """Seconds from now."""
    budget_usd: float | None = None
    max_turns: int | None = None
    max_turn_tokens: int | None = None
    max_tool_seconds: float | None = None
    attempts: int = 5
    strict: bool = False
    apply: bool = False
    local_only: bool = False
    hosts: tuple[str, ...] = ()
    python: Path | None = None
    held_out: Path | None = None
    product: tuple[str, ...] = ()
    pin: tuple[str, ...] = ()
    constraints: Constraints = field(default_factory=Constraints)


def create_goal(home: Path, request: GoalRequest, warn: Callable[[str], object] = str) -> GoalDirectory:
    """Check a request, measure its baseline and write the goal. Raises `BadInput` for a goal that could never be
    reached, and `MissingDependency` where no test can be imported, before anything is spent. `warn` is told what may
    keep some tests from passing."""
    workspace = request.workspace.absolute()
    if not workspace.is_dir():
        raise BadInput(f"no such workspace directory: {workspace}")
    check_hosts(request.hosts)
    read_command(request.success)
    model = _checked_model(request, home)
    interpreter = _interpreter(workspace, request.python)
    start = read_project_source(workspace)
    roles = FileRoles(_paths("--product", request.product, start), _paths("--pin", request.pin, start))
    held_out = read_held_out(request.held_out, workspace, start) if request.held_out else None
    start = held_out.without(start) if held_out else start
    with ZygotePool() as zygotes:
        baseline = measure_baseline(start, request.success, interpreter, request.strict, zygotes, roles)
        held_out_baseline = _measure_held_out(start, held_out, interpreter, zygotes) if held_out else None
    if warning := check_modules(start, baseline, request.instruction, workspace):
        warn(warning)
    now = time.time()
    goal = Goal(
        goal_id=new_goal_id(now),
        workspace=str(workspace),
        success=request.success,
        model=model,
        instruction=request.instruction.strip() or f"Make this command succeed: {request.success}",
        created=now,
        deadline=now + request.deadline if request.deadline is not None else None,
        instruction_given=bool(request.instruction.strip()),
        budget_tokens=request.budget_tokens,
        budget_usd=request.budget_usd,
        max_turns=request.max_turns,
        max_turn_tokens=request.max_turn_tokens,
        max_tool_seconds=request.max_tool_seconds,
        attempts=request.attempts,
        strict=request.strict,
        apply=request.apply,
        local_only=request.local_only,
        hosts=check_hosts(request.hosts),
        constraints=request.constraints,
        interpreter=str(interpreter) if interpreter else None,
        product=roles.product,
        pin=roles.pinned,
        held_out=held_out.path if held_out else None,
        head=branch.head_of(workspace),
    )
    kept = (held_out, held_out_baseline) if held_out and held_out_baseline else None
    return write_goal(home, goal, start, baseline, kept)


def _measure_held_out(
    start: SourceTree, held_out: HeldOutTests, interpreter: Path | None, zygotes: ZygotePool
) -> GoalBaseline:
    try:
        return measure_baseline(held_out.files.overlaid_on(start), held_out.command, interpreter, False, zygotes)
    except BadInput as error:
        raise BadInput(f"--held-out: {error}") from error


def _paths(option: str, given: tuple[str, ...], start: SourceTree) -> tuple[str, ...]:
    """Paths that are given for files of the workspace, relative to it."""
    paths = []
    for path in given:
        cleaned = posixpath.normpath(path)
        if cleaned.startswith(("/", "..")) or cleaned == ".":
            raise BadInput(f"{option}: give a file or directory inside of the workspace, relative to it: {path}")
        if option == "--pin" and not start.under([cleaned]).files:
            raise BadInput(f"{option}: there is no such file in the workspace: {path}")
        paths.append(cleaned)
    return tuple(dict.fromkeys(paths))


def write_goal(
    home: Path,
    goal: Goal,
    start: SourceTree,
    baseline: GoalBaseline,
    held_out: tuple[HeldOutTests, GoalBaseline] | None = None,
) -> GoalDirectory:
    """Write a goal's directory. The goal exists once `goal.json` does, which is written last; if writing fails,
    nothing is left behind."""
    directory = goal_directory(home, goal.goal_id)
    directory.root.mkdir(parents=True)
    try:
        directory.start.mkdir()
        start.write_to(directory.start)
        if held_out:
            directory.held_out.mkdir()
            held_out[0].files.write_to(directory.held_out)
            write_atomically(directory.held_out_baseline, held_out[1].model_dump_json(indent=2).encode())
        if not goal.constraints.unreadable and not (held_out and held_out[0].inside):
            copy_history(Path(goal.workspace), goal.head, directory.history)
        write_atomically(directory.baseline, baseline.model_dump_json(indent=2).encode())
        write_atomically(directory.goal, goal.model_dump_json(indent=2).encode())
    except BaseException:
        remove_tree(directory.root)
        raise
    return directory


def _checked_model(request: GoalRequest, home: Path) -> str:
    """The model's name with absolute paths, checked without loading weights."""
    if not request.model.strip():
        raise BadInput("give a model: smollm2, a directory of weights, PROVIDER:MODEL or scripted:FILE")
    check_model_name(request.model, home, EgressPolicy(local_only=request.local_only))
    return absolute_model_name(request.model)


def _interpreter(workspace: Path, python: Path | None) -> Path | None:
    """The Python that was given, or that of the workspace's virtual environment if it has pytest, or None."""
    if python is not None:
        if not python.exists():
            raise BadInput(f"no such interpreter: {python}")
        interpreter_prefixes(python.absolute())
        return python.absolute()
    for name in _ENVIRONMENTS:
        environment = workspace / name
        if (environment / "bin" / "python").exists() and [*environment.glob("lib/python*/site-packages/pytest")]:
            return _require_installed(environment / "bin" / "python")
    return None


def _require_installed(python: Path) -> Path:
    """Refuse a Python that is not installed on this machine: the author of the workspace may have made it."""
    real = Path(os.path.realpath(python))
    install_roots = ("/usr", "/opt", sys.base_prefix)
    at_home = real.is_relative_to(Path.home()) and real.relative_to(Path.home()).parts[0].startswith(".")
    installed = at_home or any(real.is_relative_to(os.path.realpath(directory)) for directory in install_roots)
    inside_workspace = real.is_relative_to(os.path.realpath(python.parent.parent.parent))
    if (
        installed
        and not inside_workspace
        and _PYTHON.fullmatch(real.name)
        and (python.parent.parent / "pyvenv.cfg").is_file()
    ):
        return python
    raise BadInput(f"{python} is not a link to a Python that is installed here; if you trust it, give it as --python")
