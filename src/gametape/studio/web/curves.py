"""The curves of a training run, read as its log grows: only what was added is read, and memory stays bounded.

When a log has more updates than are kept, every other one is dropped, and from then on only every second is taken, and
so on. Evaluations and alarms are few and are all kept, up to a bound.
"""

import json
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gametape.evals.statistics import wilson_interval
from gametape.record.regular_file import open_regular, passed_lines
from gametape.studio.step_view import count, mapping, tame_numbers

MOST_POINTS = 2_000
MOST_RUNS_KEPT = 32
_MOST_EVENTS = 500
_UPDATE = b'{"kind": "update"'
UPDATE_KEYS = (
    "reward",
    "pass_rate",
    "entropy",
    "kl_to_start",
    "turn_tokens",
    "mismatch",
    "tokens_per_second",
    "loss",
    "gradient",
    "ttf",
    "targets",
    "staleness",
    "seconds",
    "episodes",
)
TIME_KEYS = ("decode", "tools", "prepare", "verify", "coach", "learn", "idle")
EVAL_KEYS = ("success", "load_bearing", "ordinary", "hinted", "episodes_so_far", "flops", "seconds")
ALARM_KEYS = ("step", "name", "value", "limit", "advice")

Row = dict[str, Any]


@dataclass
class RunCurves:
    """What is known of a log up to `offset` bytes. `stride` is one more than the updates left out between two."""

    offset: int = 0
    inode: int = 0
    inside: bool = False
    """Whether `offset` lies in a line that is too long to be read."""
    stride: int = 1
    seen: int = 0
    updates: list[Row] = field(default_factory=list)
    evals: list[Row] = field(default_factory=list)
    alarms: list[Row] = field(default_factory=list)
    left_out: int = 0
    """Evaluations and alarms beyond the bound, and lines that are no JSON or too long."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "offset": self.offset,
            "stride": self.stride,
            "updates": self.updates,
            "evals": self.evals,
            "alarms": self.alarms,
            "left_out": self.left_out,
        }

    def add_line(self, line: bytes) -> None:
        if line.startswith(_UPDATE) and self.seen % self.stride:
            self.seen += 1  # it would be dropped: to parse it is most of the time that a long log takes
            return
        row = curve_row(line)
        if row is None:
            self.left_out += bool(line.strip())
            return
        kind = row.pop("kind")
        if kind == "update":
            self._add_update(row)
        elif kind in ("eval", "alarm"):
            rows = self.evals if kind == "eval" else self.alarms
            if len(rows) < _MOST_EVENTS:
                rows.append(row)
            else:
                self.left_out += 1

    def _add_update(self, row: Row) -> None:
        self.seen += 1
        if (self.seen - 1) % self.stride:
            return
        self.updates.append(row)
        if len(self.updates) > MOST_POINTS:
            self.updates = self.updates[::2]
            self.stride *= 2


class CurveStore:
    """The curves of the runs that were looked at last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Path, RunCurves] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, log: Path) -> RunCurves:
        """The curves as the log stands now. A log that became shorter, as a resumed run's does, is read anew."""
        with self._lock:
            known = self._kept.pop(log, RunCurves())
            curves = self._kept[log] = read_on(log, known)
            while len(self._kept) > MOST_RUNS_KEPT:
                self._kept.popitem(last=False)
            return curves


def read_on(log: Path, known: RunCurves) -> RunCurves:
    try:
        with open_regular(log) as file:
            status = os.fstat(file.fileno())
            if status.st_size < known.offset or (known.inode and status.st_ino != known.inode):
                known = RunCurves()
            known.inode = status.st_ino
            for line, end, goes_on in passed_lines(file, known.offset, known.inside):
                known.offset, known.inside = end, goes_on
                if line is not None:
                    known.add_line(line)
                else:
                    known.left_out += not goes_on
    except OSError:
        return known
    return known


def curve_row(line: bytes) -> Row | None:
    """What curves need of a line of the log; None where it is no JSON object."""
    try:
        entry = tame_numbers(json.loads(line))
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    kind = entry.get("kind")
    if kind == "update":
        row = {key: _number(entry.get(key)) for key in UPDATE_KEYS}
        time = mapping(entry.get("time"))
        return {"kind": kind, "step": _number(entry.get("step")), **row} | {
            f"time_{key}": _number(time.get(key)) for key in TIME_KEYS
        }
    if kind == "eval":
        score = {key: _number(entry.get(key)) for key in EVAL_KEYS}
        hinted, alone = score["hinted"], score["load_bearing"]
        gain = hinted - alone if hinted is not None and alone is not None else None
        low, high = _interval(score["success"], entry.get("episodes"))
        score |= {"hint_gain": gain, "success_low": low, "success_high": high}
        return {"kind": kind, "step": _number(entry.get("step"))} | score
    if kind == "alarm":
        return {"kind": kind} | {key: entry.get(key) for key in ALARM_KEYS}
    return {"kind": str(kind)}


def _interval(share: float | None, episodes: Any) -> tuple[float | None, float | None]:
    """Of a share of so many episodes; nothing where it is none."""
    if share is None or not 0 <= share <= 1 or not (n := count(episodes)):
        return None, None
    return wilson_interval(round(share * n), n)


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
