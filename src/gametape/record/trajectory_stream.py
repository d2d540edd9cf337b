"""Read a trajectory step by step, for people to look at: huge files, files of other makers, journals that still grow.

Only what a view needs is checked: that this is a trajectory, and that its steps are objects. `trajectory_file` is the
strict reader. Token ids are dropped as they are read, so memory holds the text of one file and no columns of numbers.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from gametape.core.errors import BadInput
from gametape.core.tokens import TOKEN_COLUMNS
from gametape.record.errors import printable_path, read_error
from gametape.record.journal_format import JOURNAL_KEY, SUBAGENT_KEY, is_journal

_NOT_SPACE = re.compile(r"[^ \t\n\r]")
_VERSION = re.compile(r"ATIF-v\d+(\.\d+)*")
_HEAD_BYTES = 64

Keep = Callable[[dict[str, Any]], bool]
"""Whether a step is kept; called for every step in order."""


@dataclass(frozen=True)
class StreamedTrajectory:
    """`header` is the trajectory without its steps. `running` says that it is a journal, which may still grow."""

    header: dict[str, Any]
    steps: list[dict[str, Any]]
    running: bool


def stream_trajectory(path: Path, keep: Keep = lambda _step: True) -> StreamedTrajectory:
    """Read a trajectory, and those of its steps that are to be kept. Raises `BadInput` with one line."""
    try:
        with path.open("rb") as file:
            if path.is_dir():
                raise IsADirectoryError(21, "Is a directory")
            running = is_journal(file.read(_HEAD_BYTES))
            file.seek(0)
            reader = _JournalReader(path, file) if running else _DocumentReader(path, file.read())
            steps = [step for step in map(_without_token_ids, reader.steps()) if keep(step)]
    except OSError as error:
        raise read_error(path, error) from None
    except ValueError:
        raise BadInput(f"{printable_path(path)}: not a path") from None
    header = reader.header
    if not running and not _VERSION.fullmatch(str(header.get("schema_version"))):
        raise BadInput(f"{printable_path(path)}: not a trajectory: schema_version is not that of an ATIF file")
    return StreamedTrajectory(header, steps, running)


class _DocumentReader:
    """One JSON object whose `steps` are decoded one by one."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.header: dict[str, Any] = {}
        self._path = path
        self._decoder = json.JSONDecoder(parse_constant=_refuse_constant)
        self._at = 0
        try:
            self._text = data.decode()
        except UnicodeDecodeError as error:
            self._refuse(f"not UTF-8 (byte {error.start})")

    def steps(self) -> Iterator[dict[str, Any]]:
        if not self._next("{"):
            self._refuse("expected a JSON object that holds a trajectory")
        found = False
        while not self._next("}"):
            if self.header or found:
                self._expect(",")
            key = self._value()
            self._expect(":")
            if key == "steps" and self._next("["):
                found = True
                yield from self._elements()
            else:
                self.header[str(key)] = self._value()
        self._skip_space()
        if self._at != len(self._text):
            self._refuse(f"more than one JSON document (character {self._at})")
        if not found:
            self._refuse("not a trajectory: it has no list of steps")

    def _elements(self) -> Iterator[dict[str, Any]]:
        number = 0
        while not self._next("]"):
            if number:
                self._expect(",")
            step = self._value()
            if not isinstance(step, dict):
                self._refuse(f"steps[{number}]: expected an object")
            yield step
            number += 1

    def _skip_space(self) -> None:
        found = _NOT_SPACE.search(self._text, self._at)
        self._at = found.start() if found else len(self._text)

    def _next(self, mark: str) -> bool:
        self._skip_space()
        if not self._text.startswith(mark, self._at):
            return False
        self._at += 1
        return True

    def _expect(self, mark: str) -> None:
        if not self._next(mark):
            self._refuse(f"not JSON: expected {mark} at character {self._at}")

    def _value(self) -> Any:
        self._skip_space()
        try:
            value, self._at = self._decoder.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            self._refuse(f"not JSON: line {error.lineno}, column {error.colno}: {error.msg}")
        except (RecursionError, ValueError) as error:
            self._refuse(f"not JSON that can be read here: {_reason(error)}")
        return value

    def _refuse(self, reason: str) -> NoReturn:
        raise BadInput(f"{printable_path(self._path)}: {reason}")


class _JournalReader:
    """The lines of a journal. An unfinished last line is not there yet."""

    def __init__(self, path: Path, lines: Iterator[bytes]) -> None:
        self.header: dict[str, Any] = {}
        self._path, self._lines = path, lines

    def steps(self) -> Iterator[dict[str, Any]]:
        subagents: list[Any] = []
        for number, line in enumerate(self._lines, start=1):
            if not line.endswith(b"\n"):
                break
            record = self._record(line, number)
            if number == 1 and isinstance(trajectory := record.get("trajectory"), dict) and JOURNAL_KEY in record:
                self.header = trajectory
                known = trajectory.get("subagent_trajectories")
                trajectory["subagent_trajectories"] = subagents = known if isinstance(known, list) else []
            elif number == 1:
                raise BadInput(f"{printable_path(self._path)}: line 1: expected the header of a journal")
            elif SUBAGENT_KEY in record:
                subagents.append(record[SUBAGENT_KEY])
            else:
                yield record
        if not self.header:
            raise BadInput(f"{printable_path(self._path)}: the header of the journal is cut off: no turn was recorded")

    def _record(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            record = json.loads(line.decode(), parse_constant=_refuse_constant)
        except (RecursionError, ValueError) as error:
            raise BadInput(f"{printable_path(self._path)}: line {number}: not JSON: {_reason(error)}") from None
        if not isinstance(record, dict):
            raise BadInput(f"{printable_path(self._path)}: line {number}: expected a step")
        return record


def _without_token_ids(step: dict[str, Any]) -> dict[str, Any]:
    metrics = step.get("metrics")
    if isinstance(metrics, dict):
        ids = metrics.get("completion_token_ids")
        if isinstance(ids, list):
            metrics.setdefault("completion_tokens", len(ids))
        for column in TOKEN_COLUMNS:
            metrics.pop(column, None)
    return step


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _reason(error: Exception) -> str:
    return "too many levels of nesting" if isinstance(error, RecursionError) else str(error)
