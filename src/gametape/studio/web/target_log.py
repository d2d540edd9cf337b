"""`targets.jsonl` by rollout: only where the lines lie is kept, and only lines that are new are looked at."""

import json
import os
import re
import threading
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gametape.studio.step_view import count, tame_numbers

_ROLLOUT = re.compile(rb'"rollout": ("(?:[^"\\]|\\.)*")')
_MOST_KEPT = 16
_MOST_LINES = 200_000
_MOST_OF_A_ROLLOUT = 200
_LONGEST_LINE = 8 << 20


@dataclass
class TargetLog:
    """Where the lines of each rollout lie, up to `offset` bytes."""

    path: Path
    offset: int = 0
    inode: int = 0
    lines: int = 0
    places: defaultdict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))

    def read_on(self) -> None:
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_size < self.offset or (self.inode and status.st_ino != self.inode):
                    self.offset = self.lines = 0
                    self.places.clear()
                self.inode = status.st_ino
                file.seek(self.offset)
                while self.lines < _MOST_LINES:
                    line = file.readline(_LONGEST_LINE)
                    if not line.endswith(b"\n"):
                        return
                    self._add(line)
        except OSError:
            return

    def _add(self, line: bytes) -> None:
        if found := _ROLLOUT.search(line):
            places = self.places[str(json.loads(found[1]))]
            if len(places) < _MOST_OF_A_ROLLOUT:
                places.append((self.offset, len(line)))
        self.offset += len(line)
        self.lines += 1

    def of(self, rollout: str) -> dict[int, list[dict[str, Any]]]:
        """What the targets of a rollout did, by step, the earliest update first."""
        by_step: dict[int, list[dict[str, Any]]] = {}
        if not self.places.get(rollout):
            return by_step
        try:
            with self.path.open("rb") as file:
                for offset, length in self.places[rollout]:
                    file.seek(offset)
                    entry = _parsed(file.read(length))
                    by_step.setdefault(count(entry.get("step")), []).append(entry)
        except OSError:
            return {}
        return by_step


class TargetLogStore:
    """The logs of the runs that were looked at last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Path, TargetLog] = OrderedDict()
        self._lock = threading.Lock()

    def of_run(self, root: Path) -> TargetLog:
        path = root / "targets.jsonl"
        with self._lock:
            log = self._kept.pop(path, None) or TargetLog(path)
            self._kept[path] = log
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
            log.read_on()
            return log


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        entry = tame_numbers(json.loads(line))
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}
