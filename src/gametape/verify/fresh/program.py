"""A program: requests that can be made of any worker, with symbolic references in place of a recording's numbers."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.wire_containers import Unbuilt
from gametape.verify.replay.transcript import StandIn

Path = tuple[Any, ...]
"""The way to a part of a value: positions, dict keys as `(key,)`, `PAYLOAD` into a stand-in, and `ITEMS` into a value
that could not be built because a stand-in is among its parts, such as a time with a time zone of the code's."""
PAYLOAD = "payload"
ITEMS = "items"
OBJECT = "object"
"""As the end of a path: the object that a stand-in is for, whatever kind of object it is."""
OBJECTS = {words.HANDLE, words.FUNCTION, words.ITERATOR, words.ASYNC_ITERATOR, words.AWAITABLE, words.CONTEXT}
ITERABLE = (list, tuple)
"""Plain data that an honest solution may return where the reference returns an iterator."""

WITH_PLACES = {
    words.CALL: 1,
    words.METHOD: 2,
    words.SPECIAL: 2,
    words.MAKE_ERROR: 1,
    words.OF_CLASS: 2,
    words.SET: 2,
    words.EQUALS: 1,
}
"""Operations whose fields from this one on are arguments, plain data in which may be changed."""
_INPUTS_OF_A_PROGRAM = range(2)
"""Of a program that is started, the fields that may be changed: its arguments and its standard input."""
_COMPARISONS = words.COMPARISONS | {"__eq__"}
STRUCTURAL = frozenset({words.IMPORT, words.MODULE_ATTRIBUTE})
"""Operations that any number of programs can share, since they only look something up."""


@dataclass(frozen=True)
class ObjectReference:
    """An object that an earlier step's answer contained, by its place there."""

    step: int
    path: Path


@dataclass(frozen=True)
class CallbackReference:
    """A function or iterator of the test; recorded answers stand in for it."""

    number: int


@dataclass(frozen=True)
class ProgramStep:
    """One request of a program."""

    operation: int
    fields: tuple[Any, ...]
    function: str
    """What it calls, `module:name`; empty for a look-up."""
    recorded: tuple[Any, ...]
    """The reference's answer to the recorded request."""

    @property
    def is_call(self) -> bool:
        return self.operation not in STRUCTURAL

    @property
    def is_comparison(self) -> bool:
        """Whether the code itself says if one of its objects equals something."""
        return self.operation == words.EQUALS or (
            self.operation in (words.SPECIAL, words.OF_CLASS) and self.fields[1] in _COMPARISONS
        )

    @functools.cached_property
    def needs(self) -> frozenset[int]:
        """The earlier steps whose answers it uses."""
        return frozenset(part.step for _, part in parts_of(self.fields) if isinstance(part, ObjectReference))


@dataclass(frozen=True)
class RecordedCallback:
    """The answers that a test gave when its function was called, by arguments."""

    answers: dict[str, tuple[tuple[Any, ...], ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """Steps that belong together: the life of some objects, or one call of a function."""

    steps: tuple[ProgramStep, ...]
    callbacks: dict[int, RecordedCallback] = field(default_factory=dict)
    look_ups: tuple[int, ...] = ()
    """Steps at the end that only look objects up by name, see `named_objects`."""
    renewed: bool = False
    """Whether it was drawn with other data in all places."""
    listens: frozenset[str] = frozenset()
    """What else of its answers counts, see `effects`: log records, warnings."""

    @functools.cached_property
    def key(self) -> str:
        """Identifies it by what is asked."""
        return repr([(step.operation, step.fields) for step in self.steps])

    @functools.cached_property
    def asked(self) -> frozenset[int]:
        """The steps of whose answers a later step asks something."""
        return frozenset().union(*(step.needs for step in self.steps if is_question(step)))

    @functools.cached_property
    def starts_programs(self) -> bool:
        """Whether it starts programs of the system, which takes much longer than a call."""
        return any(step.operation == words.RUN_PROGRAM for step in self.steps)

    def steps_behind(self, index: int) -> list[ProgramStep]:
        """The earlier steps on whose answers a step rests, at once or by others."""
        found: set[int] = set()
        waiting = [index]
        while waiting:
            new = self.steps[waiting.pop()].needs - found
            found |= new
            waiting += new
        return [self.steps[number] for number in sorted(found)]


def argument_fields(operation: int, fields: tuple[Any, ...]) -> range:
    """The fields of a request that are arguments."""
    if operation == words.RUN_PROGRAM:
        return _INPUTS_OF_A_PROGRAM
    return range(WITH_PLACES.get(operation, len(fields)), len(fields))


def what_counts(operation: int, answer: tuple[Any, ...]) -> tuple[Any, ...]:
    """The answer to a request without what no other code need do alike. Of a program that was started that is what it
    wrote to its error output, and white space at the end of its output."""
    if operation != words.RUN_PROGRAM or answer[0] != words.RETURN:
        return answer
    kind, number, value, *_ = answer
    if type(value) is not tuple or len(value) != 3 or type(value[1]) is not bytes:
        return answer
    return (kind, number, (value[0], value[1].rstrip()), (), None)


def is_question(step: ProgramStep) -> bool:
    """Whether a step tells something about the objects that it uses."""
    return step.operation not in (*STRUCTURAL, words.DESCRIBE, words.SIGNATURE)


def parts_of(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every part of a value with its path, the value itself first. Elements of sets have no path."""
    waiting = [(path, value)]
    while waiting:
        at, part = waiting.pop()
        yield at, part
        if isinstance(part, (list, tuple)):
            waiting += [((*at, index), child) for index, child in reversed(list(enumerate(part)))]
        elif isinstance(part, dict):
            waiting += [((*at, (key,)), child) for key, child in reversed(list(part.items()))]
        elif isinstance(part, StandIn):
            waiting.append(((*at, PAYLOAD), part.payload))
        elif isinstance(part, Unbuilt):
            waiting.append(((*at, ITEMS), part.items))


def part_at(value: Any, path: Path) -> Any:
    """The part of a value at a path. Raises LookupError where there is none."""
    for step in path:
        if step in (PAYLOAD, OBJECT):
            if not isinstance(value, StandIn):
                raise LookupError(path)
            value = value.payload if step == PAYLOAD else _object_number(value)
        elif step == ITEMS:
            if not isinstance(value, Unbuilt):
                raise LookupError(path)
            value = value.items
        elif isinstance(step, tuple):
            if not isinstance(value, dict):
                raise LookupError(path)
            value = value[step[0]]
        elif isinstance(value, (list, tuple)):
            value = value[step]
        else:
            raise LookupError(path)
    return value


def _object_number(value: StandIn) -> Any:
    if value.kind not in OBJECTS:
        raise LookupError("no object")
    return value.payload[0] if isinstance(value.payload, tuple) else value.payload


def object_data(value: StandIn) -> Any:
    """The plain data of an object whose class derives from a builtin; None where it has none."""
    return value.payload[2] if value.kind == words.HANDLE and len(value.payload) > 2 else None


def with_part(value: Any, path: Path, part: Any) -> Any:
    """A copy of a value in which one part is another."""
    if not path:
        return part
    step, rest = path[0], path[1:]
    if step == PAYLOAD:
        return StandIn(value.kind, with_part(value.payload, rest, part))
    if step == ITEMS:
        return replace(value, items=with_part(value.items, rest, part))
    if isinstance(step, tuple):
        return {key: with_part(child, rest, part) if key == step[0] else child for key, child in value.items()}
    changed = list(value)
    changed[step] = with_part(changed[step], rest, part)
    return type(value)(changed)


def exposed_numbers(operation: int, answer: tuple[Any, ...]) -> Iterator[tuple[int, Path, int]]:
    """The objects that an answer hands over: number, place in the answer, and kind of stand-in."""
    kind, _, value = answer[:3]
    if kind not in (words.RETURN, words.RAISE):
        return
    if operation == words.DESCRIBE and kind == words.RETURN and isinstance(value, dict):
        for index, base in enumerate(value.get("bases", ())):
            if type(base) is int:
                yield base, (2, ("bases",), index), words.CLASS
        return
    if operation == words.MAKE_ERROR and kind == words.RETURN:
        yield from _in_error(value, (2,))
        return
    for path, part in parts_of(value, (2,)):
        if isinstance(part, StandIn):
            yield from _in_stand_in(part, path)


def _in_stand_in(part: StandIn, path: Path) -> Iterator[tuple[int, Path, int]]:
    if part.kind in OBJECTS:
        yield _object_number(part), (*path, OBJECT), part.kind
        if part.kind == words.HANDLE:
            yield part.payload[1], (*path, PAYLOAD, 1), words.CLASS
    elif part.kind == words.ERROR:
        yield from _in_error(part.payload, (*path, PAYLOAD))
    elif part.kind == words.CLASS and type(part.payload) is int:
        yield part.payload, (*path, PAYLOAD), words.CLASS


def _in_error(payload: Any, path: Path) -> Iterator[tuple[int, Path, int]]:
    if type(payload[0]) is int:
        yield payload[0], (*path, 0), words.CLASS
    if type(payload[2]) is int:
        yield payload[2], (*path, 2), words.ERROR
    if payload[4] is not None:
        yield from _in_error(payload[4], (*path, 4))
