"""`targets.jsonl` by rollout: only where the lines lie is kept, and only lines that are new are looked at."""

import json
import os
import re
import threading
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gametape.record.regular_file import open_regular, passed_lines
from gametape.studio.step_view import count, tame_numbers

_ROLLOUT = re.compile(rb'"rollout": ("(?:[^"\\]|\\.){0,1024}+")')
_MOST_KEPT = 16
_MOST_LINES = 200_000
_MOST_OF_A_ROLLOUT = 200
_MOST_BYTES_OF_A_ROLLOUT = 64 << 20
_LONGEST_LINE = 8 << 20


@dataclass
class TargetLog:
    """Where the lines of each rollout lie, up to `offset` bytes."""

    path: Path
    offset: int = 0
    inode: int = 0
    inside: bool = False
    """Whether `offset` lies in a line that is too long to be read."""
    lines: int = 0
    places: defaultdict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))

    def read_on(self) -> None:
        try:
            with open_regular(self.path) as file:
                status = os.fstat(file.fileno())
                if status.st_size < self.offset or (self.inode and status.st_ino != self.inode):
                    self.offset, self.lines, self.inside = 0, 0, False
                    self.places.clear()
                self.inode = status.st_ino
                for line, end, goes_on in passed_lines(file, self.offset, self.inside, _LONGEST_LINE):
                    if self.lines == _MOST_LINES:
                        return
                    if line is not None:
                        self._add(line)
                    self.offset, self.inside = end, goes_on
                    self.lines += not goes_on
        except OSError:
            return

    def _add(self, line: bytes) -> None:
        """Note where a line at `offset` lies; one whose rollout has no name that can be read belongs to none."""
        if found := _ROLLOUT.search(line):
            try:
                rollout = str(json.loads(found[1]))
            except ValueError:
                return
            places = self.places[rollout]
            if len(places) < _MOST_OF_A_ROLLOUT:
                places.append((self.offset, len(line)))

    def of(self, rollout: str) -> dict[int, list[dict[str, Any]]]:
        """What the targets of a rollout did, by step, the earliest update first."""
        by_step: dict[int, list[dict[str, Any]]] = {}
        if not self.places.get(rollout):
            return by_step
        try:
            with open_regular(self.path) as file:
                room = _MOST_BYTES_OF_A_ROLLOUT
                for offset, length in self.places[rollout]:
                    room -= length
                    if room < 0:
                        break
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
