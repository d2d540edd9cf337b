"""Take up a goal: pin the workspace, run the command over it, and write both down. The workspace is only read."""

import os
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from gametape.agent.constraints import Constraints
from gametape.core.errors import BadInput
from gametape.desk.goals import branch
from gametape.desk.goals.baseline import Baseline
from gametape.desk.goals.command import read_command
from gametape.desk.goals.establishing import establish
from gametape.desk.goals.goal import Goal, GoalPlace, new_id, place_of
from gametape.engines.naming import resolve
from gametape.engines.perimeter import Perimeter
from gametape.record.atomic import write_atomically
from gametape.sandbox.snapshots.sweep import remove_tree
from gametape.tasks.deletion.finding.source import open_source
from gametape.verify.crew import Crew
from gametape.verify.interpreter import prefixes
from gametape.verify.tree import Tree

_ENVIRONMENTS = (".venv", "venv")
_PYTHON = re.compile(r"(python|pypy)[\d.]*")


@dataclass(frozen=True)
class Wish:
    """What somebody asks for."""

    workspace: Path
    success: str
    model: str
    instruction: str = ""
    budget_tokens: int | None = None
    deadline: float | None = None
    """Seconds from now."""
    attempts: int = 5
    strict: bool = False
    apply: bool = False
    local_only: bool = False
    python: Path | None = None
    constraints: Constraints = field(default_factory=Constraints)


def create(home: Path, wish: Wish) -> GoalPlace:
    """Raises `BadInput` for whatever could never be reached, before anything is spent."""
    workspace = wish.workspace.absolute()
    if not workspace.is_dir():
        raise BadInput(f"no such workspace directory: {workspace}")
    read_command(wish.success)
    model = _checked_model(wish, home)
    interpreter = _interpreter(workspace, wish.python)
    start = open_source(workspace)
    with Crew() as crew:
        baseline = establish(start, wish.success, interpreter, wish.strict, crew)
    now = time.time()
    goal = Goal(
        goal_id=new_id(now),
        workspace=str(workspace),
        success=wish.success,
        model=model,
        instruction=wish.instruction.strip() or f"Make this command succeed: {wish.success}",
        created=now,
        deadline=now + wish.deadline if wish.deadline is not None else None,
        budget_tokens=wish.budget_tokens,
        attempts=wish.attempts,
        strict=wish.strict,
        apply=wish.apply,
        local_only=wish.local_only,
        constraints=wish.constraints,
        interpreter=str(interpreter) if interpreter else None,
        head=branch.head_of(workspace),
    )
    return take_up(home, goal, start, baseline)


def take_up(home: Path, goal: Goal, start: Tree, baseline: Baseline) -> GoalPlace:
    """Write a goal down. It is there once `goal.json` is, which comes last; one that cannot be is not there at all."""
    place = place_of(home, goal.goal_id)
    place.root.mkdir(parents=True)
    try:
        place.start.mkdir()
        start.write_to(place.start)
        write_atomically(place.baseline, baseline.model_dump_json(indent=2).encode())
        write_atomically(place.goal, goal.model_dump_json(indent=2).encode())
    except BaseException:
        remove_tree(place.root)
        raise
    return place


def _checked_model(wish: Wish, home: Path) -> str:
    """The model's name as any process can use it. Weights are not loaded for this."""
    kind, _, rest = wish.model.partition(":")
    if kind == "scripted":
        resolve(wish.model, home)
        return f"scripted:{os.path.abspath(rest)}"
    if kind == "openai":
        resolve(wish.model, home, Perimeter(local_only=wish.local_only))
        return wish.model
    if not wish.model.strip():
        raise BadInput("give a model: smollm2, a directory of weights, openai:MODEL@URL or scripted:FILE")
    return os.path.abspath(wish.model) if Path(wish.model).is_dir() else wish.model


def _interpreter(workspace: Path, given: Path | None) -> Path | None:
    """The Python that was named, or that of the workspace's own environment if it has pytest, or None."""
    if given is not None:
        if not given.exists():
            raise BadInput(f"no such interpreter: {given}")
        prefixes(given.absolute())
        return given.absolute()
    for name in _ENVIRONMENTS:
        environment = workspace / name
        if (environment / "bin" / "python").exists() and [*environment.glob("lib/python*/site-packages/pytest")]:
            return _trusted(environment / "bin" / "python")
    return None


def _trusted(python: Path) -> Path:
    """Whoever made the workspace may have made the environment, so its Python has to be one that was installed here."""
    real = Path(os.path.realpath(python))
    places = ("/usr", "/opt", sys.base_prefix)
    at_home = real.is_relative_to(Path.home()) and real.relative_to(Path.home()).parts[0].startswith(".")
    installed = at_home or any(real.is_relative_to(os.path.realpath(place)) for place in places)
    of_the_workspace = real.is_relative_to(os.path.realpath(python.parent.parent.parent))
    if (
        installed
        and not of_the_workspace
        and _PYTHON.fullmatch(real.name)
        and (python.parent.parent / "pyvenv.cfg").is_file()
    ):
        return python
    raise BadInput(f"{python} is no link to a Python that is installed here; if you trust it, give it as --python")
