"""What is evaluated: a directory of tasks, one task, a list file, a suite of worlds, or worlds with a name."""

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gametape.agent.constraints import Constraints
from gametape.agent.scripted_policies import SCRIPTED_POLICIES
from gametape.agent.task_environment import TaskEnvironment, TaskSandboxPool
from gametape.agent.task_setup import present_as_question, present_as_work
from gametape.core.errors import BadInput
from gametape.core.protocols import Environment
from gametape.engines.chat_formats.code_block import with_code_block_calls
from gametape.engines.conversation import Model
from gametape.engines.scripted import ScriptedCall, ScriptedTurn
from gametape.record.errors import printable_path, read_error
from gametape.record.loaded_task import LoadedTask
from gametape.tasks.katas.generator import kata_family
from gametape.tasks.loader import load_task
from gametape.tasks.worlds.experts import ErrorAtTurnsExpert, Expert, NoisyExpert, perfect_expert, script_episode
from gametape.tasks.worlds.suite import is_suite, load_suite, preset_worlds
from gametape.tasks.worlds.tools import action_arguments
from gametape.tasks.worlds.world import World

WORLDS_PREFIX = "worlds:"
DEFAULT_WORLD_COUNT = 100
"""How many worlds a name stands for, if nothing else is said."""
_SKILL = 0.98
_CLUMSY_TURNS = (2, 5)

AttemptScript = Callable[[int], Sequence[ScriptedTurn]]
"""The turns of a written policy in its n-th attempt."""


@dataclass(frozen=True)
class SuiteItem:
    """One prompt of a suite, and what is known about it beside."""

    environment: Environment
    horizon: int = 1
    """How many things have to go right one after the other."""
    scripts: Mapping[str, AttemptScript] = field(default_factory=dict)
    """Written policies that know it."""
    adapt_model: Callable[[Model], Model] = lambda model: model
    """How a model has to be spoken to here."""


def find_tasks(suite: str, home: Path, limit: int | None = None, seed: int = 0) -> list[World] | list[LoadedTask]:
    """The worlds or tasks that a name stands for, at most `limit` of them. Raises `BadInput` if there are none."""
    if suite.startswith(WORLDS_PREFIX):
        return preset_worlds(suite, limit or DEFAULT_WORLD_COUNT, seed)
    path = Path(suite)
    if not path.exists():
        raise BadInput(f"{printable_path(path)}: no such suite; give a directory of tasks, a list file or worlds:NAME")
    if path.is_dir() and is_suite(path) and (worlds := load_suite(path)[:limit]):
        return worlds
    subjects = [load_task(task, home) for task in [*_tasks(path)][:limit]]
    if not subjects:
        raise BadInput(f"{printable_path(path)}: there is no task in it")
    name, times = Counter(subject.task.name for subject in subjects).most_common(1)[0]
    if times > 1:
        raise BadInput(f"{printable_path(path)}: {times} tasks in it are named {name}; results are kept by name")
    return subjects


def suite_digest(tasks: Sequence[World] | Sequence[LoadedTask]) -> str:
    """Names what was found with everything in it."""
    parts = [one.name if isinstance(one, World) else f"{one.task.name} {one.digest}" for one in tasks]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@asynccontextmanager
async def open_suite(
    tasks: Sequence[World] | Sequence[LoadedTask],
    home: Path,
    max_turns: int = 50,
    constraints: Constraints | None = None,
) -> AsyncIterator[list[SuiteItem]]:
    """Ready to be played: worlds in memory, tasks in a playground of their own, in so many turns, under these
    constraints, and judged as `gametape verify` does."""
    async with AsyncExitStack() as stack:
        items = []
        playground: TaskSandboxPool | None = None
        for one in tasks:
            if isinstance(one, World):
                items.append(item_from_world(one))
                continue
            if playground is None:
                playground = await stack.enter_async_context(TaskSandboxPool(home, profile="full"))
            items.append(item_from_task(one, playground, home, max_turns, constraints))
        yield items


def item_from_world(world: World) -> SuiteItem:
    noisy = NoisyExpert(_SKILL, world.spec.base_rate)
    experts: dict[str, Expert] = {"expert": perfect_expert, "noisy": noisy, "clumsy": ErrorAtTurnsExpert(_CLUMSY_TURNS)}
    scripts = {name: _world_script(world, expert) for name, expert in experts.items()}
    return SuiteItem(world, world.spec.horizon, scripts)


def item_from_task(
    subject: LoadedTask,
    sandboxes: TaskSandboxPool,
    home: Path,
    max_turns: int = 50,
    constraints: Constraints | None = None,
) -> SuiteItem:
    """A kata is put as a question; anything else as work."""
    family = kata_family(subject.task)
    if family is None:
        work = TaskEnvironment(sandboxes, subject, present_as_work(subject, home, max_turns, constraints))
        return SuiteItem(
            work, work.horizon, {name: _task_script(subject, made) for name, made in SCRIPTED_POLICIES.items()}
        )
    question = TaskEnvironment(sandboxes, subject, present_as_question(subject), bucket=f"katas-{family}")
    return SuiteItem(
        question,
        1,
        {"expert": lambda _number: _answered(subject)},
        lambda model: with_code_block_calls(model, "answer", "code"),
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
            raise read_error(path, error) from error
        except UnicodeDecodeError as error:
            raise BadInput(f"{printable_path(path)}: not a list of task directories: not UTF-8") from error
        yield from (path.parent / line.strip() for line in lines if line.strip())


def _world_script(world: World, expert: Expert) -> AttemptScript:
    def turns(number: int) -> list[ScriptedTurn]:
        calls = [(act.action.tool, dict(action_arguments(act.action))) for act in script_episode(world, expert, number)]
        return [ScriptedTurn(tool_calls=[ScriptedCall(name=tool, arguments=given)]) for tool, given in calls]

    return turns


def _task_script(subject: LoadedTask, made: Callable[[LoadedTask], list[ScriptedTurn]]) -> AttemptScript:
    return lambda _number: made(subject)


def _answered(subject: LoadedTask) -> list[ScriptedTurn]:
    if subject.reference is None:
        raise BadInput(f"{subject.task.name}: has no solution, so a scripted expert cannot solve it")
    code = subject.reference.text(subject.task.source_paths[0])
    return [ScriptedTurn(text=f"```python\n{code}```")]
