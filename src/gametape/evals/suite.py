"""Suites: a directory of tasks, one task, a list file, a directory of worlds, or worlds or katas by name."""

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gametape.agent.constraints import Constraints
from gametape.agent.limits import RolloutLimits
from gametape.agent.scripted_policies import SCRIPTED_POLICIES, TaskScript
from gametape.agent.task_environment import TaskEnvironment, TaskSandboxPool
from gametape.agent.task_setup import present_as_question, present_as_work
from gametape.core.errors import BadInput
from gametape.core.protocols import Environment
from gametape.engines.chat_formats.code_block import with_code_block_calls
from gametape.engines.conversation import Model
from gametape.engines.scripted import ScriptedCall, ScriptedTurn
from gametape.record.directory_walk import walk
from gametape.record.errors import printable_path, read_error
from gametape.record.loaded_task import LoadedTask
from gametape.tasks.katas.chains import KATA_CHAINS_PREFIX, named_chains
from gametape.tasks.katas.generator import KATAS_PREFIX, kata_family, named_katas
from gametape.tasks.loader import load_task
from gametape.tasks.worlds.experts import ErrorAtTurnsExpert, Expert, NoisyExpert, perfect_expert, script_episode
from gametape.tasks.worlds.suite import is_suite, load_suite, preset_worlds
from gametape.tasks.worlds.tools import action_arguments
from gametape.tasks.worlds.world import World

WORLDS_PREFIX = "worlds:"
DEFAULT_WORLD_COUNT = 100
"""The number of worlds in a preset, unless a limit is given."""
_SKILL = 0.98
_CLUMSY_TURNS = (2, 5)

AttemptScript = Callable[[int], Sequence[ScriptedTurn]]
"""The turns of a scripted policy in its n-th attempt."""


@dataclass(frozen=True)
class SuiteItem:
    """One environment of a suite, and what evaluation needs to know about it."""

    environment: Environment
    horizon: int = 1
    """The number of things that must go right one after the other."""
    scripts: Mapping[str, AttemptScript] = field(default_factory=dict)
    """Scripted policies for this environment, by name."""
    adapt_model: Callable[[Model], Model] = lambda model: model
    """Puts the chat format that this environment needs on a model."""


def find_tasks(suite: str, home: Path, limit: int | None = None, seed: int = 0) -> list[World] | list[LoadedTask]:
    """The worlds or tasks of a suite, at most `limit` of them. Raises `BadInput` if there are none."""
    if suite.startswith(WORLDS_PREFIX):
        return preset_worlds(suite, limit or DEFAULT_WORLD_COUNT, seed)
    if suite.startswith(KATAS_PREFIX):
        return named_katas(suite.removeprefix(KATAS_PREFIX), seed)[:limit]
    if suite.startswith(KATA_CHAINS_PREFIX):
        return named_chains(suite.removeprefix(KATA_CHAINS_PREFIX), seed)[:limit]
    path = Path(suite)
    if not path.exists():
        raise BadInput(
            f"{printable_path(path)}: no such suite; "
            "give a directory of tasks, a list file, worlds:NAME, katas:FAMILY or kata-chains:FAMILY:FUNCTIONS"
        )
    if path.is_dir() and is_suite(path) and (worlds := load_suite(path)[:limit]):
        return worlds
    loaded = [load_task(directory, home) for directory in [*_task_directories(path)][:limit]]
    if not loaded:
        raise BadInput(f"{printable_path(path)}: there is no task in it")
    name, times = Counter(task.task.name for task in loaded).most_common(1)[0]
    if times > 1:
        raise BadInput(f"{printable_path(path)}: {times} tasks in it are named {name}; results are kept by name")
    return loaded


def suite_digest(tasks: Sequence[World] | Sequence[LoadedTask]) -> str:
    """A digest of the names and contents of all tasks."""
    parts = [task.name if isinstance(task, World) else f"{task.task.name} {task.digest}" for task in tasks]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@asynccontextmanager
async def open_suite(
    tasks: Sequence[World] | Sequence[LoadedTask],
    home: Path,
    max_turns: int = RolloutLimits().turns,
    constraints: Constraints | None = None,
) -> AsyncIterator[list[SuiteItem]]:
    """The items of a suite, ready to run: worlds in memory, tasks in sandboxes, with this number of turns and these
    constraints, scored as `gametape verify` does."""
    async with AsyncExitStack() as stack:
        items = []
        sandboxes: TaskSandboxPool | None = None
        for task in tasks:
            if isinstance(task, World):
                items.append(item_from_world(task))
                continue
            if sandboxes is None:
                sandboxes = await stack.enter_async_context(TaskSandboxPool(home, profile="full"))
            items.append(item_from_task(task, sandboxes, home, max_turns, constraints))
        yield items


def item_from_world(world: World) -> SuiteItem:
    noisy = NoisyExpert(_SKILL, world.spec.base_rate)
    experts: dict[str, Expert] = {"expert": perfect_expert, "noisy": noisy, "clumsy": ErrorAtTurnsExpert(_CLUMSY_TURNS)}
    scripts = {name: _world_script(world, expert) for name, expert in experts.items()}
    return SuiteItem(world, world.spec.horizon, scripts)


def item_from_task(
    task: LoadedTask,
    sandboxes: TaskSandboxPool,
    home: Path,
    max_turns: int = RolloutLimits().turns,
    constraints: Constraints | None = None,
) -> SuiteItem:
    """A kata is presented as a question, any other task as work with tools."""
    family = kata_family(task.task)
    if family is None:
        work = TaskEnvironment(sandboxes, task, present_as_work(task, home, max_turns, constraints, sandboxes.profile))
        return SuiteItem(
            work, work.horizon, {name: _task_script(task, script) for name, script in SCRIPTED_POLICIES.items()}
        )
    question = TaskEnvironment(sandboxes, task, present_as_question(task), bucket=f"katas-{family}")
    return SuiteItem(
        question,
        1,
        {"expert": lambda _number: _answer_script(task)},
        lambda model: with_code_block_calls(model, "answer", "code"),
    )


def _task_directories(path: Path) -> Iterator[Path]:
    if (path / "task.toml").is_file():
        yield path
    elif path.is_dir():
        directories = sorted(Path(top) for top, _inner, names in walk(path) if "task.toml" in names)
        yield from (task for task in directories if not any(parent in directories for parent in task.parents))
    else:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise read_error(path, error) from error
        except UnicodeDecodeError as error:
            raise BadInput(f"{printable_path(path)}: not a list of task directories: not UTF-8") from error
        for number, line in enumerate(map(str.strip, lines), start=1):
            if line and not (path.parent / line).is_dir():
                where = f"{printable_path(path)}, line {number}"
                raise BadInput(f"{where}: {printable_path(Path(line))} is no task directory")
            if line:
                yield path.parent / line


def _world_script(world: World, expert: Expert) -> AttemptScript:
    def turns(number: int) -> list[ScriptedTurn]:
        calls = [(act.action.tool, dict(action_arguments(act.action))) for act in script_episode(world, expert, number)]
        return [ScriptedTurn(tool_calls=[ScriptedCall(name=tool, arguments=arguments)]) for tool, arguments in calls]

    return turns


def _task_script(task: LoadedTask, script: TaskScript) -> AttemptScript:
    return lambda _number: script(task)


def _answer_script(task: LoadedTask) -> list[ScriptedTurn]:
    if task.reference is None:
        raise BadInput(f"{task.task.name}: has no solution, so a scripted expert cannot solve it")
    code = task.reference.text(task.task.source_paths[0])
    return [ScriptedTurn(text=f"```python\n{code}```")]
