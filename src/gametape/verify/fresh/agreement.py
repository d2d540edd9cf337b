"""Whether an answer agrees with the reference's, where an honest solution may differ in what nobody asked for.

Floats are close, the order of a dict is free, objects count as objects (later steps ask what they hold), exceptions are
compared by class, texts of exceptions are ignored, and printed text counts only where the reference printed.
"""

import collections
import math
from collections.abc import Callable
from typing import Any

from gametape.verify.fresh.conversation import LOST, UNREACHED, PlayedProgram
from gametape.verify.fresh.effects import says_the_same
from gametape.verify.fresh.program import ITERABLE, OBJECTS, object_data, part_at, parts_of
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.wire import WireError
from gametape.verify.in_sandbox.wire_containers import Unbuilt
from gametape.verify.in_sandbox.wire_errors import error_class
from gametape.verify.replay.transcript import StandIn

_RELATIVE, _ABSOLUTE = 1e-6, 1e-9
_TOO_GENERAL = frozenset({"Exception", "BaseException", "object", ""})
_NOT_COMPARED = frozenset({"__hash__", "__sizeof__", "__dir__", "__length_hint__"})


def is_compared(operation: int, fields: tuple[Any, ...]) -> bool:
    """Whether the answer to a step says anything: look-ups, hashes and descriptions do not."""
    if operation in (words.IMPORT, words.MODULE_ATTRIBUTE, words.DESCRIBE, words.SIGNATURE):
        return False
    return not (operation in (words.SPECIAL, words.OF_CLASS) and fields[1] in (*_NOT_COMPARED, "dir"))


def agrees(expected: PlayedProgram, actual: PlayedProgram, step: int, asked: bool = True) -> bool:
    """Whether two answers to the same step agree. The expected one is the reference's. Where no later step asks
    anything of this one's answer (not `asked`), an object that is data too must be such data."""
    ours, theirs = expected.answers[step], actual.answers[step]
    if ours in (UNREACHED, LOST) or theirs in (UNREACHED, LOST):
        return ours == theirs == UNREACHED
    if ours[0] != theirs[0]:
        return False
    try:
        if ours[0] == words.RAISE:
            names = expected.errors.get(step, ()), actual.errors.get(step, ())
            same = _same_error(ours[2], theirs[2], *names, expected)
        else:
            same = same_value(_refusals(ours[2]), _refusals(theirs[2]))
            same = same and same_value(_changed_arguments(ours), _changed_arguments(theirs))
            same = same and (asked or not _keeps_data_back(ours, theirs))
    except (RecursionError, ArithmeticError):  # a number that signals when it is compared
        return False
    return same and _same_output(ours[4], theirs[4]) and _said_the_same(ours[4], theirs[4])


def raises_early(expected: PlayedProgram, following: int, actual: PlayedProgram, step: int) -> bool:
    """Whether a step raises what the reference raises when its answer, an iterator, is asked for the first element."""
    ours, theirs = expected.answers[following], actual.answers[step]
    if ours[0] != words.RAISE or theirs[0] != words.RAISE:
        return False
    names = expected.errors.get(following, ()), actual.errors.get(step, ())
    return _same_error(ours[2], theirs[2], *names, expected)


def _keeps_data_back(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> bool:
    for path, part in parts_of(ours[2], (2,)):
        if type(part) is StandIn and object_data(part):
            try:
                other = part_at(theirs, path)
            except LookupError:
                return True
            if type(other) is not StandIn or type(object_data(other)) is not type(object_data(part)):
                return True
    return False


def _changed_arguments(answer: tuple[Any, ...]) -> Any:
    """The plain arguments that a call changed in place; later steps ask what objects hold."""
    updates = answer[3]
    return [update for update in updates if type(update[0]) is int] if type(updates) is tuple else updates


def _refusals(value: Any) -> Any:
    """The answer with False in place of NotImplemented: an object that does not compare with another is not equal."""
    if type(value) is list:
        return [(False, False) if outcome == (False, NotImplemented) else outcome for outcome in value]
    return False if value is NotImplemented else value


def same_value(expected: Any, actual: Any) -> bool:
    """Whether two values agree, with exact types of all but numbers that are close."""
    kind = type(expected)
    if kind is StandIn and expected.kind == words.ITERATOR and type(actual) in ITERABLE:
        return True  # what it yields is asked by later steps
    if kind is not type(actual):
        return False
    same = _SAME.get(kind)
    return bool(expected == actual) if same is None else same(expected, actual)


def _same_items(expected: Any, actual: Any) -> bool:
    return len(expected) == len(actual) and all(map(same_value, expected, actual))


def _same_dict(expected: dict[Any, Any], actual: dict[Any, Any]) -> bool:
    return expected.keys() == actual.keys() and all(same_value(item, actual[key]) for key, item in expected.items())


def _close(expected: float, actual: float) -> bool:
    if math.isnan(expected) or math.isnan(actual):
        return math.isnan(expected) and math.isnan(actual)
    return math.isclose(expected, actual, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)


def _same_stand_in(expected: StandIn, actual: StandIn) -> bool:
    """Objects agree as objects; what they hold and do is asked by later steps. Two that are plain data of one type too,
    as named tuples are, agree as data."""
    if expected.kind in OBJECTS and actual.kind in OBJECTS:
        ours, theirs = object_data(expected), object_data(actual)
        return type(ours) is not type(theirs) or same_value(ours, theirs)
    if expected.kind != actual.kind:
        return False
    if expected.kind in (words.YOURS, words.YOUR_ERROR, words.MODULE):
        return bool(expected.payload == actual.payload)
    return True


def _same_parts(expected: Unbuilt, actual: Unbuilt) -> bool:
    kinds_are_same = (expected.tag, expected.kind) == (actual.tag, actual.kind)
    return kinds_are_same and _same_items(expected.items, actual.items)


_SAME: dict[type, Callable[[Any, Any], bool]] = {
    float: _close,
    complex: lambda expected, actual: _close(expected.real, actual.real) and _close(expected.imag, actual.imag),
    list: _same_items,
    tuple: _same_items,
    collections.deque: _same_items,
    type({}.values()): _same_items,
    dict: _same_dict,
    StandIn: _same_stand_in,
    Unbuilt: _same_parts,
}


def _same_error(
    expected: Any, actual: Any, ours: tuple[str, ...], theirs: tuple[str, ...], reference: PlayedProgram
) -> bool:
    """Whether an error is the expected one by its class. A class that derives from the expected one and from another of
    those that the reference raises would be right whatever was expected. So would a base of several: it is right only
    where no test waits for something below it."""
    if not isinstance(expected, StandIn) or not isinstance(actual, StandIn):
        return False
    if words.YOUR_ERROR in (expected.kind, actual.kind):
        return expected == actual
    ours, theirs = lineage(ours), lineage(theirs)
    if not ours or not theirs:
        return False
    if ours[0] in theirs:
        others = reference.known_errors & set(theirs[1:])
        return theirs[0] == ours[0] or not any(_is_another_error(name, ours) for name in others)
    if theirs[0] not in set(ours) - _TOO_GENERAL:
        return False
    return not reference.awaited_errors & set(ours[: ours.index(theirs[0])])


def _is_another_error(name: str, ours: tuple[str, ...]) -> bool:
    """Whether a class is neither a base of ours nor, as far as both sides know it, a kind of ours."""
    try:
        bases = {base.__name__ for base in error_class(name).__mro__}
    except WireError:
        bases = set()
    return name not in ours and not bases & (set(ours) - _TOO_GENERAL)


def lineage(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names with those of the bases that both sides know."""
    found = list(names)
    for name in names:
        try:
            found += [base.__name__ for base in error_class(name).__mro__[1:]]
        except WireError:
            continue
    return tuple(found)


def _same_output(expected: Any, actual: Any) -> bool:
    if not expected or not expected[0].strip():
        return True
    return bool(actual) and isinstance(actual[0], str) and expected[0].rstrip() == actual[0].rstrip()


def _said_the_same(expected: Any, actual: Any) -> bool:
    if not expected or len(expected) < 3 or type(expected[2]) is not tuple:
        return True
    return says_the_same(expected[2], actual[2] if actual and len(actual) > 2 else None)
