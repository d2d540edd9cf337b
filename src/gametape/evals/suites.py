"""What is evaluated: a directory of tasks, one task, a list file, a suite of worlds, or worlds with a name."""

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gametape.agent.constraints import Constraints
from gametape.agent.presenting import as_question, as_work
from gametape.agent.sandboxed import Playground, SandboxAssignment
from gametape.agent.scripts import SCRIPTS
from gametape.core.assignment import Assignment
from gametape.core.errors import BadInput
from gametape.engines.conversation import Model
from gametape.engines.dialects.block import in_blocks
from gametape.engines.scripted import ScriptedCall, ScriptedTurn
from gametape.record.trouble import shown, unreadable
from gametape.tasks.directory import load_task
from gametape.tasks.katas.making import family_of
from gametape.tasks.worlds.experts import Clumsy, Expert, Noisy, perfect, script
from gametape.tasks.worlds.suite import is_suite, load_suite, named_worlds
from gametape.tasks.worlds.tools import arguments_of
from gametape.tasks.worlds.world import World
from gametape.verify.subject import Subject

WORLDS = "worlds:"
NAMED_COUNT = 100
"""How many worlds a name stands for, if nothing else is said."""
_SKILL = 0.98
_CLUMSY_TURNS = (2, 5)

Script = Callable[[int], Sequence[ScriptedTurn]]
"""The turns of a written policy in its n-th attempt."""


@dataclass(frozen=True)
class Item:
    """One prompt of a suite, and what is known about it beside."""

    assignment: Assignment
    horizon: int = 1
    """How many things have to go right one after the other."""
    scripts: Mapping[str, Script] = field(default_factory=dict)
    """Written policies that know it."""
    spoken: Callable[[Model], Model] = lambda model: model
    """How a model has to be spoken to here."""


def find(suite: str, home: Path, limit: int | None = None, seed: int = 0) -> list[World] | list[Subject]:
    """The worlds or tasks that a name stands for, at most `limit` of them. Raises `BadInput` if there are none."""
    if suite.startswith(WORLDS):
        return named_worlds(suite, limit or NAMED_COUNT, seed)
    path = Path(suite)
    if not path.exists():
        raise BadInput(f"{shown(path)}: no such suite; give a directory of tasks, a list file or worlds:NAME")
    if path.is_dir() and is_suite(path) and (worlds := load_suite(path)[:limit]):
        return worlds
    subjects = [load_task(task, home) for task in [*_tasks(path)][:limit]]
    if not subjects:
        raise BadInput(f"{shown(path)}: there is no task in it")
    name, times = Counter(subject.task.name for subject in subjects).most_common(1)[0]
    if times > 1:
        raise BadInput(f"{shown(path)}: {times} tasks in it are named {name}; results are kept by name")
    return subjects


def digest_of(found: Sequence[World] | Sequence[Subject]) -> str:
    """Names what was found with everything in it."""
    parts = [one.name if isinstance(one, World) else f"{one.task.name} {one.digest}" for one in found]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@asynccontextmanager
async def opened(
    found: Sequence[World] | Sequence[Subject], home: Path, turns: int = 50, constraints: Constraints | None = None
) -> AsyncIterator[list[Item]]:
    """Ready to be played: worlds in memory, tasks in a playground of their own, in so many turns, under these
    constraints, and judged as `gametape verify` does."""
    async with AsyncExitStack() as stack:
        items = []
        playground: Playground | None = None
        for one in found:
            if isinstance(one, World):
                items.append(of_world(one))
                continue
            if playground is None:
                playground = await stack.enter_async_context(Playground(home, profile="full"))
            items.append(of_task(one, playground, home, turns, constraints))
        yield items


def of_world(world: World) -> Item:
    noisy = Noisy(_SKILL, world.spec.base_rate)
    experts: dict[str, Expert] = {"expert": perfect, "noisy": noisy, "clumsy": Clumsy(_CLUMSY_TURNS)}
    scripts = {name: _world_script(world, expert) for name, expert in experts.items()}
    return Item(world, world.spec.horizon, scripts)


def of_task(
    subject: Subject, playground: Playground, home: Path, turns: int = 50, constraints: Constraints | None = None
) -> Item:
    """A kata is put as a question; anything else as work."""
    family = family_of(subject.task)
    if family is None:
        work = SandboxAssignment(playground, subject, as_work(subject, home, turns, constraints))
        return Item(work, work.horizon, {name: _task_script(subject, made) for name, made in SCRIPTS.items()})
    question = SandboxAssignment(playground, subject, as_question(subject), cell=f"katas-{family}")
    return Item(
        question, 1, {"expert": lambda _number: _answered(subject)}, lambda model: in_blocks(model, "answer", "code")
    )


def _tasks(path: Path) -> Iterator[Path]:
    if (path / "task.toml").is_file():
        yield path
    elif path.is_dir():
        found = sorted(file.parent for file in path.rglob("task.toml"))
        yield from (task for task in found if not any(parent in found for parent in task.parents))
    else:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise unreadable(path, error) from error
        except UnicodeDecodeError as error:
            raise BadInput(f"{shown(path)}: not a list of task directories: not UTF-8") from error
        yield from (path.parent / line.strip() for line in lines if line.strip())


def _world_script(world: World, expert: Expert) -> Script:
    def turns(number: int) -> list[ScriptedTurn]:
        calls = [(act.move.tool, dict(arguments_of(act.move))) for act in script(world, expert, number)]
        return [ScriptedTurn(tool_calls=[ScriptedCall(name=tool, arguments=given)]) for tool, given in calls]

    return turns


def _task_script(subject: Subject, made: Callable[[Subject], list[ScriptedTurn]]) -> Script:
    return lambda _number: made(subject)


def _answered(subject: Subject) -> list[ScriptedTurn]:
    if subject.reference is None:
        raise BadInput(f"{subject.task.name}: has no solution, so a scripted expert cannot solve it")
    code = subject.reference.text(subject.task.source_paths[0])
    return [ScriptedTurn(text=f"```python\n{code}```")]
