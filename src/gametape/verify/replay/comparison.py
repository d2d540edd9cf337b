"""Whether an attempt's answer is the reference's answer.

Equal bytes are equal. Else both are decoded and compared strictly: exact types, the order of a dict, the bits of a
float, the numbers of objects, which say which object is the same as which. Three things are compared with less: the
order of a set is nobody's choice, a description of a class counts by what a test can see of it, and the docstring of a
module or a function is its author's own.
"""

import collections
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.wire import WireError
from gametape.verify.replay.hostile_frame import read_answer, size_limit
from gametape.verify.replay.transcript import StandIn, read_frame, write_frame

_SEEN_OF_A_CLASS = ("name", "bases", "is_error", "hashable")
_ANSWERS = (words.RETURN, words.SAME, words.RAISE)
_MESSAGE_FIELDS = 5
_FUNCTION_DOCSTRING = 4
"""The place of the docstring among the fields of a function."""
_MOST_TEXT = 2000
_SCALARS = frozenset({type(None), bool, int, float, complex, str, bytes})


@dataclass(frozen=True)
class Difference:
    """The first answer of an attempt that was not the reference's, as the frames that crossed: messages of the wire's
    protocol, in which stand-ins take the place of objects."""

    request_frame: bytes
    expected_frame: bytes
    actual_frame: bytes
    """Empty where what came is too long to be kept."""

    @property
    def request(self) -> Any:
        return read_frame(self.request_frame)

    @property
    def expected(self) -> Any:
        return read_frame(self.expected_frame)

    @property
    def actual(self) -> Any:
        """None where no readable answer came."""
        try:
            return read_answer(self.actual_frame, len(self.actual_frame))
        except WireError:
            return None

    def __str__(self) -> str:
        actual = self.actual
        told = shown(actual) if actual is not None else "no answer"
        return f"{shown(self.request)}: {shown(self.expected)} expected, {told} given"


def find_difference(request: bytes, expected: bytes, actual: bytes) -> Difference:
    """The difference of two frames, bounded in size."""
    return Difference(request, expected, actual if len(actual) <= size_limit(len(expected)) else b"")


def shown(value: Any) -> str:
    """A decoded value for a reader, cut short. Data of an attempt may be nested too deep or have too many digits."""
    try:
        return repr(value)[:_MOST_TEXT]
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} that is too large to show"


def printable(text: str) -> str:
    """The text with escapes in place of lone surrogates, which no file and no terminal takes."""
    return text.encode("utf-8", "backslashreplace").decode()


def same_answer(request: Any, expected: bytes, actual: bytes) -> bool:
    """Whether the answer to a request (a decoded message) is the expected one."""
    if expected == actual:
        return True
    try:
        given = read_answer(actual, size_limit(len(expected)))
    except WireError:
        return False
    wanted = read_frame(expected)
    if request[0] == words.REQUEST and request[2] == words.DESCRIBE:
        return _same_description(wanted, given)
    if request[0] == words.REQUEST and request[2] == words.IMPORT:
        return same_data(_without_docstring(wanted), _without_docstring(given))
    return same_data(wanted, given)


def is_answer(body: bytes) -> bool:
    """Whether a frame ends a request. One that is too long to be looked at does not."""
    try:
        return read_answer(body)[0] in _ANSWERS
    except WireError:
        return False


def _same_description(wanted: Any, given: Any) -> bool:
    if not same_data(wanted[:2], given[:2] if type(given) is tuple and len(given) == len(wanted) else None):
        return False
    described, attempted = wanted[2], given[2]
    if type(described) is not dict or type(attempted) is not dict:
        return same_data(wanted, given)
    special = attempted.get("special")
    return (
        all(same_data(described.get(key), attempted.get(key)) for key in _SEEN_OF_A_CLASS)
        and type(special) is tuple
        and set(described["special"]) <= {name for name in special if type(name) is str}
    )


def _without_docstring(answer: Any) -> Any:
    """The answer to an import: its value begins with the module's docstring."""
    if type(answer) is not tuple or len(answer) != _MESSAGE_FIELDS or type(answer[2]) is not tuple:
        return answer
    return (*answer[:2], answer[2][1:], *answer[3:])


def _seen_of_object(value: StandIn) -> list[Any]:
    """A stand-in as far as it counts: a function without its docstring, which is the last of its fields."""
    if value.kind == words.FUNCTION and type(value.payload) is tuple:
        return [value.kind, value.payload[:_FUNCTION_DOCSTRING]]
    return [value.kind, value.payload]


def same_data(wanted: Any, given: Any) -> bool:
    """Whether two decoded values are the same, types and all. Neither can have code: both come from the decoder."""
    waiting = [(wanted, given)]
    while waiting:
        left, right = waiting.pop()
        kind = type(left)
        if kind is not type(right):
            return False
        parts = _PARTS.get(kind)
        if parts is None:
            if write_frame(left) != write_frame(right):
                return False
            continue
        lefts, rights = parts(left), parts(right)
        if len(lefts) != len(rights):
            return False
        waiting += zip(lefts, rights, strict=True)
    return True


def stands_for_data(wanted: Any, given: Any) -> bool:
    """Whether an object of a class stands in an answer where a plain number, text or nothing is wanted."""
    waiting = [(wanted, given)]
    while waiting:
        left, right = waiting.pop()
        if isinstance(right, StandIn) and right.kind == words.HANDLE and type(left) in _SCALARS:
            return True
        parts = _PARTS.get(type(left))
        if parts is not None and type(left) is type(right) and not isinstance(left, (StandIn, set, frozenset)):
            waiting += zip(parts(left), parts(right), strict=False)
    return False


def _unordered(value: Any) -> list[Any]:
    """The members of a set in an order that depends on nothing but them."""
    return sorted(value, key=_rank)


def _rank(member: Any) -> tuple[bytes, bytes]:
    """First the bytes without their order: a member may hold a set itself."""
    body = write_frame(member)
    return bytes(sorted(body)), body


_PARTS: dict[type, Callable[[Any], list[Any]]] = {
    list: list,
    tuple: list,
    dict: lambda value: [part for pair in value.items() for part in pair],
    set: _unordered,
    frozenset: _unordered,
    type({}.keys()): list,
    type({}.items()): list,
    type({}.values()): list,
    slice: lambda value: [value.start, value.stop, value.step],
    collections.deque: lambda value: [value.maxlen, *value],
    StandIn: _seen_of_object,
}
