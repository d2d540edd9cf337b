"""Frames that an attempt sent: read as data of the documented form, bounded in size and depth.

Every part of such a frame may be chosen to harm the reader. What passes here is safe to compare, to print and to walk
through with plain recursion; what does not is a difference, never an exception of the verifier.
"""

import collections
from typing import Any

from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.wire import WireError
from gametape.verify.in_sandbox.wire_containers import Unbuilt
from gametape.verify.replay.transcript import StandIn, read_frame

LEAST_LIMIT = 1 << 16
_TIMES_EXPECTED = 8
"""An answer may have `LEAST_LIMIT` bytes, and so many times as many as the reference's."""
MOST_DEPTH = 100
_MOST_BITS = 63
_FIELDS = 5
_PRINTED = (2, 3)
"""The parts of what was printed: output, errors, and effects where there are any."""
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.items()), type({}.values()))
_MESSAGES = (words.RETURN, words.SAME, words.RAISE, words.CALLBACK)
_ERROR_FIELDS = 6
_NUMBERED = {
    words.ITERATOR,
    words.ASYNC_ITERATOR,
    words.AWAITABLE,
    words.CONTEXT,
    words.YOUR_ERROR,
    words.YOURS,
}
_PLAIN = frozenset({int, str, bool, float, bytes, type(None)})
"""Types of which nothing has to be checked."""


def size_limit(expected: int) -> int:
    """The bytes that an answer may have where the reference's has so many."""
    return max(LEAST_LIMIT, _TIMES_EXPECTED * expected)


def read_answer(body: bytes, most_bytes: int = LEAST_LIMIT) -> tuple[Any, ...]:
    """The message of a frame of an attempt. Raises WireError for anything that no honest worker sends."""
    if len(body) > most_bytes:
        raise WireError(f"an answer of {len(body)} bytes")
    message = read_frame(body)
    if type(message) is not tuple or len(message) != _FIELDS or type(message[0]) is not int:
        raise WireError("a message of no known form")
    kind, number, value, updates, printed = message
    if kind not in _MESSAGES or not is_number(number):
        raise WireError("a message of no known kind")
    if kind == words.CALLBACK:
        well_formed = is_number(value) and type(updates) in (tuple, list) and type(printed) is dict
    else:
        well_formed = _are_updates(updates) and _is_printed(printed)
    if kind == words.SAME:
        well_formed = well_formed and is_number(value)
    if kind == words.RAISE:
        well_formed = well_formed and isinstance(value, StandIn) and value.kind in (words.ERROR, words.YOUR_ERROR)
    if not well_formed:
        raise WireError("a message with parts of no known form")
    _check_parts(message)
    return message


def is_number(value: Any) -> bool:
    return type(value) is int and value.bit_length() <= _MOST_BITS


def _are_updates(updates: Any) -> bool:
    return type(updates) in (tuple, list) and all(type(update) is tuple and update for update in updates)


def _is_printed(printed: Any) -> bool:
    if printed is None:
        return True
    texts = type(printed) is tuple and len(printed) in _PRINTED and all(type(text) is str for text in printed[:2])
    return texts and (len(printed) == _PRINTED[0] or type(printed[2]) is dict)


def _check_parts(message: tuple[Any, ...]) -> None:
    """Raise WireError where a part lies too deep, or is a stand-in without the form of its kind."""
    level: list[Any] = [message]
    for _ in range(MOST_DEPTH):
        if not level:
            return
        level = [child for part in level if type(part) not in _PLAIN for child in _children(part)]
    raise WireError("a message that is nested too deeply")


def _children(part: Any) -> Any:
    if isinstance(part, StandIn):
        if not _has_form(part.kind, part.payload):
            raise WireError("a stand-in of no known form")
        return (part.payload,)
    if isinstance(part, dict):
        return (*part.keys(), *part.values())
    if isinstance(part, Unbuilt):
        return part.items
    if isinstance(part, slice):
        return (part.start, part.stop, part.step)
    return part if isinstance(part, (list, tuple, set, frozenset, collections.deque, *_VIEWS)) else ()


def _has_form(kind: int, payload: Any) -> bool:
    if kind == words.HANDLE:
        return type(payload) is tuple and len(payload) in (2, 3) and all(map(_is_reference, payload[:2]))
    if kind == words.FUNCTION:
        has_fields = type(payload) is tuple and len(payload) == _FIELDS and is_number(payload[0])
        return has_fields and all(text is None or type(text) is str for text in payload[1:])
    if kind in _NUMBERED:
        return is_number(payload)
    if kind == words.CLASS:
        return _is_reference(payload)
    if kind in (words.MODULE, words.LOGGER):
        return type(payload) is str
    return kind == words.ERROR and payload is not None and _is_error(payload)


def _is_reference(value: Any) -> bool:
    """The number of an object or class, or the name of a class that both sides know."""
    return type(value) is str or is_number(value)


def _is_error(payload: Any) -> bool:
    """Whether these are the fields of an error, and its cause has such fields too or is None."""
    for _ in range(MOST_DEPTH):
        if payload is None:
            return True
        if type(payload) is not tuple or len(payload) != _ERROR_FIELDS or not _is_reference(payload[0]):
            return False
        if not (payload[2] is None or is_number(payload[2])) or type(payload[3]) is not str:
            return False
        payload = payload[4]
    return False
