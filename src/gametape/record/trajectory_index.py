"""Where each step of a trajectory lies in its file, so that a few steps of a huge one can be read without the others.

A file is gone through once, in blocks, and only offsets are kept. A journal is continued where it was left. Only what a
view needs is checked, as in `trajectory_stream`.
"""

import json
import os
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from pydantic_core import from_json

from gametape.core.errors import BadInput
from gametape.record.errors import printable_path, read_error
from gametape.record.journal_format import JOURNAL_KEY, SUBAGENT_KEY, is_journal
from gametape.record.regular_file import passed_lines, regular_file_descriptor

_BLOCK = 1 << 20
_HEAD_BYTES = 64
_LONGEST_HEADER = 32 << 20
_LONGEST_STEP = 32 << 20
_LARGEST_FILE = 1 << 30
"""A file of this size takes some seconds to go through; a larger one is not shown."""
_MOST_STEPS = 200_000
_OUTSIDE = re.compile(rb'["{}\[\]]')
_IN_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_LONGEST_KEY = 64
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_LEVELS = 8
"""Of nesting in a step that is passed over at once; a deeper one is gone through mark by mark."""


def _nested(levels: int) -> bytes:
    inside = b"|" + _nested(levels - 1) if levels else b""
    return rb'[{\[](?:[^"{}\[\]]++|' + _STRING + inside + rb")*+[}\]]"


_STEP = re.compile(_nested(_LEVELS), re.DOTALL)

FileVersion = tuple[int, int, int]
"""Inode, size and time of change: what tells that a file is not the one that was read."""


@dataclass
class TrajectoryIndex:
    """`header` is the trajectory without its steps, `read_to` how many bytes of a journal are in the index."""

    path: Path
    version: FileVersion
    running: bool
    header: dict[str, Any] = field(default_factory=dict)
    starts: "array[int]" = field(default_factory=lambda: array("Q"))
    ends: "array[int]" = field(default_factory=lambda: array("Q"))
    read_to: int = 0

    def __len__(self) -> int:
        return len(self.starts)

    def steps(self, first: int, stop: int) -> Iterator[dict[str, Any]]:
        """The steps from index `first` up to `stop`, one at a time. Raises `BadInput` where the file has changed
        meanwhile."""
        fd = _open(self.path)
        try:
            if not self.running and file_version(fd) != self.version:
                raise BadInput(f"{printable_path(self.path)}: was written anew while it was read; load it again")
            for number in range(first, min(stop, len(self))):
                if self.ends[number] - self.starts[number] > _LONGEST_STEP:
                    raise BadInput(f"{printable_path(self.path)}: step {number + 1} is too large to be shown")
                data = os.pread(fd, self.ends[number] - self.starts[number], self.starts[number])
                yield _object(self.path, data, f"step {number + 1}")
        finally:
            os.close(fd)


def index_trajectory(path: Path, earlier: TrajectoryIndex | None = None) -> TrajectoryIndex:
    """The index of a file as it is now. An `earlier` one of the same file is returned, or continued, where it can be.
    Raises `BadInput` with one line."""
    fd = _open(path)
    try:
        version = file_version(fd)
        if earlier and earlier.version == version:
            return earlier
        if version[1] > _LARGEST_FILE:
            raise BadInput(f"{printable_path(path)}: larger than {_LARGEST_FILE >> 20:,} MB, too large to be shown")
        if is_journal(os.pread(fd, _HEAD_BYTES, 0)):
            grown = earlier and earlier.running and earlier.version[0] == version[0] and earlier.read_to <= version[1]
            index = earlier if earlier and grown else TrajectoryIndex(path, version, running=True)
            index.version = version
            _continue_journal(index, fd)
            return index
        index = TrajectoryIndex(path, version, running=False)
        _DocumentScanner(index, fd).scan()
        return index
    except OSError as error:
        raise read_error(path, error) from None
    finally:
        os.close(fd)


def file_version(fd: int) -> FileVersion:
    status = os.fstat(fd)
    return status.st_ino, status.st_size, status.st_mtime_ns


def _open(path: Path) -> int:
    """A regular file, open for reading; never waits for a pipe, follows no link."""
    try:
        return regular_file_descriptor(path)
    except OSError as error:
        raise read_error(path, error) from None


class _DocumentScanner:
    """Goes through one JSON object and notes where the elements of its list `steps` begin and end."""

    def __init__(self, index: TrajectoryIndex, fd: int) -> None:
        self._index, self._fd = index, fd
        self._depth = 0
        self._string = bytearray()
        self._in_string = False
        self._key = b""
        self._list: tuple[int, int] | None = None
        self._open_list: int | None = None

    def scan(self) -> None:
        at, rest = 0, b""
        while block := os.pread(self._fd, _BLOCK, at):
            if b"\0" in block:
                self._refuse("not JSON: it has a byte that is no text, as a file with holes does")
            data = rest + block
            used = self._block(data, at - len(rest))
            _refuse_too_many(self._index)
            rest = data[used:]
            at += len(block)
        if self._list is None or self._depth or self._in_string:
            self._refuse("not a trajectory: not a whole JSON object with a list of steps")
        self._read_header(at)

    def _block(self, data: bytes, base: int) -> int:
        """How many bytes of the block are done: a backslash at its end waits for what follows it."""
        at = 0
        while at < len(data):
            if self._in_string:
                match = _IN_STRING.match(data, at)
                end = match.end() if match else at
                if self._depth == 1 and len(self._string) < _LONGEST_KEY:
                    self._string += data[at : min(end, at + _LONGEST_KEY)]
                at = end
                if at < len(data):
                    if data[at] != ord('"'):
                        return at
                    self._key, self._in_string = bytes(self._string), False
                    at += 1
                continue
            found = _OUTSIDE.search(data, at)
            if found is None:
                return len(data)
            if self._depth == 2 and self._open_list is not None and (step := _STEP.match(data, found.start())):
                self._index.starts.append(base + step.start())
                self._index.ends.append(base + step.end())
                at = step.end()
                continue
            self._mark(data[found.start()], base + found.start())
            at = found.end()
        return at

    def _mark(self, mark: int, place: int) -> None:
        if mark == ord('"'):
            self._in_string = True
            self._string.clear()
        elif mark in b"{[":
            if self._depth == 1 and mark == ord("[") and self._key == b"steps":
                self._open_list = place
            elif self._depth == 2 and self._open_list is not None:
                self._index.starts.append(place)
            self._depth += 1
        else:
            self._depth -= 1
            if self._depth == 2 and self._open_list is not None:
                self._index.ends.append(place + 1)
            elif self._depth == 1 and self._open_list is not None:
                self._list, self._open_list = (self._open_list, place + 1), None

    def _read_header(self, size: int) -> None:
        start, end = self._list or (0, 0)
        if size - (end - start) > _LONGEST_HEADER:
            self._refuse("what is beside its steps is too large to be shown")
        data = os.pread(self._fd, start, 0) + b"[]" + os.pread(self._fd, size - end, end)
        self._index.header = _object(self._index.path, data, "the document")
        if not str(self._index.header.get("schema_version")).startswith("ATIF-v"):
            self._refuse("not a trajectory: schema_version is not that of an ATIF file")

    def _refuse(self, reason: str) -> NoReturn:
        raise BadInput(f"{printable_path(self._index.path)}: {reason}")


def _continue_journal(index: TrajectoryIndex, fd: int) -> None:
    """Add the whole lines that were written since."""
    with open(os.dup(fd), "rb") as file:
        for line, end, _ in passed_lines(file, index.read_to, longest=_LONGEST_STEP, most=_LARGEST_FILE):
            if line is None:
                raise BadInput(
                    f"{printable_path(index.path)}: the line after step {len(index)} is too large to be shown"
                )
            start, index.read_to = index.read_to, end
            if not index.header:
                index.header = _journal_header(index.path, line)
            elif line.startswith(f'{{"{SUBAGENT_KEY}"'.encode()):
                subagents = index.header["subagent_trajectories"]
                subagents.append(_object(index.path, line, "a subagent")[SUBAGENT_KEY])
            else:
                index.starts.append(start)
                index.ends.append(index.read_to)
                _refuse_too_many(index)
    if not index.header:
        raise BadInput(f"{printable_path(index.path)}: the header of the journal is cut off: no turn was recorded")


def _refuse_too_many(index: TrajectoryIndex) -> None:
    if len(index) > _MOST_STEPS:
        raise BadInput(f"{printable_path(index.path)}: more than {_MOST_STEPS:,} steps, too many to be shown")


def _journal_header(path: Path, line: bytes) -> dict[str, Any]:
    record = _object(path, line, "line 1")
    header = record.get("trajectory")
    if JOURNAL_KEY not in record or not isinstance(header, dict):
        raise BadInput(f"{printable_path(path)}: line 1: expected the header of a journal")
    known = header.get("subagent_trajectories")
    header["subagent_trajectories"] = known if isinstance(known, list) else []
    return header


def _parsed(data: bytes) -> Any:
    """By the quick parser, and where it is stricter than others are, by the one of the standard library."""
    try:
        return from_json(data, allow_inf_nan=False)
    except ValueError:
        return json.loads(data.decode(), parse_constant=lambda _name: None)


def _object(path: Path, data: bytes, what: str) -> dict[str, Any]:
    """A JSON object; numbers that are none become null."""
    try:
        value = _parsed(data)
    except (ValueError, RecursionError) as error:
        reason = "too many levels of nesting" if isinstance(error, RecursionError) else error
        raise BadInput(f"{printable_path(path)}: {what}: not JSON that can be read here ({reason})") from None
    if not isinstance(value, dict):
        raise BadInput(f"{printable_path(path)}: {what}: expected an object")
    return value
