"""What may change when a run is resumed: its length and how it is observed. The rest is the experiment itself."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gametape.core.config import RunConfig
from gametape.core.errors import BadInput

RESUMABLE_SETTINGS = (
    "episodes",
    "flops",
    "allow_shared",
    "eval.every",
    "eval.episodes",
    "eval.slice",
    "eval.stop_at",
    "rollouts.*",
    "memory.*",
    "track",
    "checkpoint.every",
    "checkpoint.keep",
    "alarms.*",
    "watch.stop",
    "device",
    "dtype",
    "ranks",
    "replicas",
    "cluster.*",
)


class ConfigChange(NamedTuple):
    """One setting before and after."""

    setting: str
    before: Any
    after: Any


def find_changes(before: RunConfig, after: RunConfig) -> list[ConfigChange]:
    """Every setting that differs, by its full name such as `eval.every`."""
    old, new = (_flat(config.model_dump(mode="json")) for config in (before, after))
    names = dict.fromkeys([*old, *new])
    return [ConfigChange(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]


def require_resumable(changes: Sequence[ConfigChange], where: str) -> None:
    """Refuse a change that would make another experiment of the run."""
    if fixed := [change.setting for change in changes if not _is_resumable(change.setting)]:
        raise BadInput(
            f"{where}: {fixed[0]} is not what the run was begun with; begin another run for that "
            f"(a run that goes on may change: {', '.join(RESUMABLE_SETTINGS)})"
        )


def _is_resumable(setting: str) -> bool:
    return setting in RESUMABLE_SETTINGS or f"{setting.partition('.')[0]}.*" in RESUMABLE_SETTINGS


def _flat(document: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in document.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
