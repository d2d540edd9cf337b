"""How the pass rate of each kind of task went, and which of them the curriculum has retired, from a run's log."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gametape.record.regular_file import open_regular
from gametape.studio.page import printable_text
from gametape.studio.step_view import count, mapping, tame_numbers

_MOST_BYTES = 32 << 20
"""Of the end of a log."""
_MOST_KINDS = 2_000
_MOST_POINTS = 400
_LONGEST = 300


@dataclass
class TaskHistory:
    """One kind of task: its pass rate after each update that drew it. Every second one is dropped when there are too
    many; the last one stays. `retired` is None where the log does not say."""

    name: str
    points: list[tuple[int, float]] = field(default_factory=list)
    retired: bool | None = None

    @property
    def last(self) -> float | None:
        return self.points[-1][1] if self.points else None

    def add(self, step: int, rate: float) -> None:
        if len(self.points) >= _MOST_POINTS:
            self.points = self.points[:-1:2] + self.points[-1:]
        self.points.append((step, rate))


def read_task_history(log: Path) -> tuple[list[TaskHistory], bool]:
    """Of each kind, the hardest first, and whether the log is longer than what was read of it."""
    kinds: dict[str, TaskHistory] = {}
    lines, cut = _last_lines(log)
    for line in lines:
        update = _parsed(line) if b'"pass_rates"' in line else {}
        step, retired = count(update.get("step")), update.get("retired")
        for key, rate in mapping(update.get("pass_rates")).items():
            if not isinstance(rate, int | float) or isinstance(rate, bool):
                continue
            if key not in kinds and len(kinds) == _MOST_KINDS:
                continue
            history = kinds.setdefault(key, TaskHistory(printable_text(key)[:_LONGEST]))
            history.add(step, float(rate))
            history.retired = key in retired if isinstance(retired, list) else None
    return sorted(kinds.values(), key=lambda kind: (kind.last or 0.0, kind.name)), cut


def _last_lines(log: Path) -> tuple[Iterator[bytes], bool]:
    try:
        with open_regular(log) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _MOST_BYTES))
            data = file.read(_MOST_BYTES)
    except OSError:
        return iter(()), False
    cut = size > _MOST_BYTES
    return iter(data.split(b"\n")[cut:]), cut


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        entry = tame_numbers(json.loads(line))
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}
