"""The steps of a journal, read when they are asked for.

A thread goes on for thousands of turns, and to continue it takes the last few. So opening a journal finds where its
lines begin and parses none of them, and only so many steps are kept.
"""

import json
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self, overload

from pydantic import ValidationError

from gametape.core.errors import BadInput
from gametape.core.step import Step
from gametape.core.token_prefix import TokenPrefix
from gametape.core.tokens import TOKEN_COLUMNS, TURN_COLUMNS
from gametape.core.trajectory import Trajectory, step_faults
from gametape.core.validation import Problem, format_location, problems_from
from gametape.record.errors import printable_path, read_error
from gametape.record.journal_format import (
    context_after,
    continues_prompt,
    has_whole_prompt,
    is_journal,
    is_step_line,
    parse_header,
    restore_prompt_prefix,
)
from gametape.record.strict_json import InvalidJson, decode

MOST_KEPT = 1024
_CHUNK_BYTES = 1 << 18


class JournalSteps(Sequence[Step]):
    """The steps of one journal. The most recently used ones are kept, the others are read again.

    `parsed` counts the steps that were read from the file. A step that cannot be read raises `BadInput`, as late as
    it is asked for.
    """

    def __init__(self, path: Path, header: Trajectory, starts: "array[int]", lines: "array[int]", end: int) -> None:
        self.path = path
        self.header = header
        self.complete_bytes = end
        """The length of the journal without a last line that is not finished."""
        self.parsed = 0
        self._starts, self._lines = starts, lines
        self._kept: OrderedDict[int, Step] = OrderedDict()
        self._known = (-1, TokenPrefix())
        """A step, and prompt and completion of the last turn up to it."""

    @classmethod
    def open(cls, path: Path) -> Self | None:
        """The steps of a journal; None for a journal with subagents and for what is no journal: they are read whole."""
        starts, lines, at, number = array("q"), array("q"), 0, 0
        header = b""
        try:
            with path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    if number == 1:
                        header = line
                        if not is_journal(line):
                            return None
                    elif not is_step_line(line):
                        return None
                    elif line.endswith(b"\n"):
                        starts.append(at)
                        lines.append(number)
                    else:
                        break
                    at += len(line)
        except OSError as error:
            raise read_error(path, error) from None
        return cls(path, _header(header, path), starts, lines, at)

    def append(self, step: Step, size: int) -> None:
        """Take in a step that was just written as the last `size` bytes of the journal."""
        self._starts.append(self.complete_bytes)
        self._lines.append(self._lines[-1] + 1 if self._lines else 2)
        self.complete_bytes += size
        self._keep(len(self._starts) - 1, step)

    def end_of(self, count: int) -> int:
        """The length of the journal up to the end of its first `count` steps."""
        return self._starts[count] if count < len(self) else self.complete_bytes

    def line(self, index: int) -> bytes:
        """The bytes of a step."""
        try:
            with self.path.open("rb") as file:
                return self._line(file, index)
        except OSError as error:
            raise read_error(self.path, error) from None

    def brief(self, index: int) -> Step:
        """A step, perhaps without its token ids: no other step has to be read for it, and most of a line is ids."""
        return self._kept[index] if index in self._kept else self._parse(self.line(index), index, None)

    def mentions(self, text: str) -> bool:
        """Whether this text stands as a whole value somewhere in the journal."""
        wanted = json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")
        before = b""
        try:
            with self.path.open("rb") as file:
                while chunk := file.read(_CHUNK_BYTES):
                    if wanted in before + chunk:
                        return True
                    before = chunk[-len(wanted) :]
            return False
        except OSError as error:
            raise read_error(self.path, error) from None

    def context(self) -> TokenPrefix:
        """Prompt and completion of the last turn that has both."""
        for index in reversed(range(len(self))):
            step = self[index]
            if step.tokens() is not None:
                return context_after_step(step, TokenPrefix())
        return TokenPrefix()

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> list[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | list[Step]:
        if isinstance(index, slice):
            return [self._step(number) for number in range(len(self))[index]]
        return self._step(range(len(self))[index])

    def __iter__(self) -> Iterator[Step]:
        return (self._step(number) for number in range(len(self)))

    def _step(self, index: int) -> Step:
        if index in self._kept:
            self._kept.move_to_end(index)
            return self._kept[index]
        try:
            with self.path.open("rb") as file:
                return self._read(file, index)
        except OSError as error:
            raise read_error(self.path, error) from None

    def _read(self, file: BinaryIO, index: int) -> Step:
        """Parse a step, after those that its prompt continues."""
        last, before = self._known
        first = index
        if last != index - 1:
            before = TokenPrefix()
            line = self._line(file, index)
            while first and continues_prompt(line) | (first < index) and not has_whole_prompt(line):
                first -= 1
                if first == last:
                    first, before = last + 1, self._known[1]
                    break
                line = self._line(file, first)
        for number in range(first, index + 1):
            step = self._parse(self._line(file, number), number, before)
            before = context_after_step(step, before)
            self._keep(number, step)
        self._known = (index, before)
        return step

    def _line(self, file: BinaryIO, index: int) -> bytes:
        file.seek(self._starts[index])
        return file.readline()

    def _parse(self, line: bytes, index: int, before: TokenPrefix | None) -> Step:
        """A step whose prompt comes after these ids; with None, a step without all that there is for each token."""
        self.parsed += 1
        document = None if before is not None else _without_token_ids(line)
        try:
            if document is None:
                document = decode(line, first_line=self._lines[index], location=("steps", index))
            if not isinstance(document, dict):
                raise InvalidJson(Problem(f"line {self._lines[index]}", "a step or a subagent's trajectory"))
            restore_prompt_prefix(document, before or TokenPrefix(), self._lines[index])
            step = Step.model_validate(document)
        except InvalidJson as error:
            raise self._refused(error.problem) from None
        except ValidationError as error:
            where = format_location(("steps", index))
            problem = problems_from(error, document)[0]
            raise self._refused(Problem(f"{where}.{problem.path}", problem.expected)) from None
        for location, expected in step_faults(step, index, self.header.schema_version, set()):
            raise self._refused(Problem(format_location(location), expected))
        return step

    def _refused(self, problem: Problem) -> BadInput:
        return BadInput(f"{printable_path(self.path)}: {problem}")

    def _keep(self, index: int, step: Step) -> None:
        self._kept[index] = step
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)


def _without_token_ids(line: bytes) -> Any:
    """A line without its token ids; None for one that the strict reader has to explain."""
    try:
        document = json.loads(line)
        for inner, columns in (
            (document.get("metrics"), TOKEN_COLUMNS),
            ((document.get("extra") or {}).get("gametape"), TURN_COLUMNS),
        ):
            for column in columns:
                (inner or {}).pop(column, None)
    except (AttributeError, TypeError, RecursionError, ValueError):
        return None
    return document


def context_after_step(step: Step, before: TokenPrefix) -> TokenPrefix:
    """Prompt and completion of a turn; those of the turns before it, where it has not both."""
    metrics = step.metrics
    names = ("prompt_token_ids", "completion_token_ids")
    return context_after({"metrics": {name: getattr(metrics, name, None) for name in names}}, before)


def _header(line: bytes, path: Path) -> Trajectory:
    document = {}
    try:
        document = parse_header(line.removesuffix(b"\n") if line.endswith(b"\n") else b"")
        return Trajectory.model_validate(document)
    except InvalidJson as error:
        raise BadInput(f"{printable_path(path)}: {error.problem}") from None
    except ValidationError as error:
        raise BadInput(f"{printable_path(path)}: {problems_from(error, document)[0]}") from None
