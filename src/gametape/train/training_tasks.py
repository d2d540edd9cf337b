"""The tasks that a run trains on, and which it refuses. Loads nothing heavy."""

from collections.abc import Sequence
from pathlib import Path

from gametape.core.config import RunConfig
from gametape.core.errors import BadInput
from gametape.core.plural import count_of
from gametape.evals.suite import find_tasks
from gametape.record.loaded_task import LoadedTask
from gametape.tasks.worlds.world import World

_MOST_NAMED = 8
"""Tasks that a refusal names; the others are counted."""


def training_tasks(config: RunConfig, home: Path) -> list[World] | list[LoadedTask]:
    """Those that `tasks` names, where that is not a preset of worlds."""
    found = find_tasks(config.tasks, home, seed=config.seed)
    loaded = [task for task in found if isinstance(task, LoadedTask)]
    if loaded:
        if len(loaded) < 2:
            raise BadInput(f"tasks: {config.tasks}: at least two tasks are needed, one of them to be held out")
        if not config.allow_shared:
            _refuse_shared(config.tasks, loaded)
    return found


def _refuse_shared(tasks: str, loaded: Sequence[LoadedTask]) -> None:
    """A policy learns whatever earns a verdict falsely, and in shared mode a verdict can be forged."""
    shared = [task.task.name for task in loaded if task.task.mode == "shared"]
    if shared:
        more = f" and {len(shared) - _MOST_NAMED} more" if len(shared) > _MOST_NAMED else ""
        named = ", ".join(shared[:_MOST_NAMED]) + more
        raise BadInput(
            f"tasks: {tasks}: {count_of(len(shared), 'task')} in shared mode, where a verdict can be forged: {named}; "
            "take them out, or give --allow-shared (allow_shared = true)"
        )
