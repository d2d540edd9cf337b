"""Whether an attempt answers a live test as it answered the same calls in replay.

Code can find out whether it is replayed. If a live test alone decided, such code could try one answer in each place. So
the answers up to the one that differed in replay, and that one, must be the same live. An honest answer may differ in
what chance decides: the order of what a set held, the address of an object, the text of an exception.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.wire import WireError
from gametape.verify.replay.comparison import Difference, same_answer, same_data
from gametape.verify.replay.hostile_frame import read_answer
from gametape.verify.replay.script import Script
from gametape.verify.replay.transcript import Frame, StandIn, read_frame, write_frame

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_MOST_BYTES = 16 << 20
_WITHOUT_OBJECT = frozenset(
    {words.HELLO, words.IMPORT, words.MODULE_ATTRIBUTE, words.MODULE_NAMES, words.SET_IN_MODULE, words.RUN_PROGRAM}
)
"""Operations whose first field is not the number of an object."""


def answered_alike(script: Script, difference: Difference, live: Iterable[Frame]) -> bool:
    """Whether the live answers are those of the replay, up to its first difference.

    Where the test itself asks something else than in the recording, nothing more can be compared.
    """
    asked_live = _by_number(live)
    exact = True
    for request_frame, answer in _replayed(script, difference):
        request = read_frame(request_frame)
        question, given = asked_live.get(_number(request), (None, b""))
        if not _same_request(request, question):
            return exact
        if request[0] == words.REQUEST and request[2] == words.EQUALS:
            given = _chosen(request, question, given)
        try:
            if not _is_same(request, answer, given):
                exact = False
                if not _is_alike(answer, given):
                    return False
        except (WireError, RecursionError, ValueError, TypeError, LookupError):  # no answer of an honest worker
            return False
    return True


def _replayed(script: Script, difference: Difference) -> Iterator[tuple[bytes, bytes]]:
    """What was asked in the replay with the attempt's answers: the reference's, and last the one that differed."""
    for exchange in script.exchanges:
        for request, expected in zip(exchange.requests, exchange.expected, strict=True):
            if request == difference.request_frame:
                yield request, difference.actual_frame
                return
            yield request, expected


def _by_number(frames: Iterable[Frame]) -> dict[tuple[bool, int], tuple[Any, bytes]]:
    """What the test sent, as read, with the worker's next frame; by its number."""
    found: dict[tuple[bool, int], tuple[Any, bytes]] = {}
    asked: Any = None
    for frame in frames:
        if frame.by_test:
            asked = read_frame(frame.body)
        elif asked is not None:
            found[_number(asked)] = asked, frame.body
            asked = None
    return found


def _number(message: Any) -> tuple[bool, int]:
    return message[0] == words.REQUEST, message[1]


def _same_request(recorded: Any, live: Any) -> bool:
    """Whether both ask the same. The numbers of objects may differ, as a live test forgets objects, and so may the
    decoys of a comparison."""
    if live is None or live[0] != recorded[0]:
        return False
    if recorded[0] != words.REQUEST:
        return _as_text(recorded[2], True) == _as_text(live[2], True)
    if recorded[2] != live[2] or recorded[2] == words.EQUALS:
        return bool(recorded[2] == live[2])
    begin = 0 if recorded[2] in _WITHOUT_OBJECT else 1
    return _as_text(recorded[3][begin:], True) == _as_text(live[3][begin:], True)


def _chosen(recorded: Any, live: Any, answer: bytes) -> bytes:
    """The answer to a comparison among decoys, without them; nothing where it has another form."""
    (value, *_) = recorded[3][1]
    try:
        message = read_answer(answer, _MOST_BYTES)
    except WireError:
        return b""
    outcomes = message[2]
    if message[0] != words.RETURN or type(outcomes) is not list or len(outcomes) != len(live[3][1]):
        return answer
    places = [at for at, candidate in enumerate(live[3][1]) if same_data(candidate, value)]
    return write_frame((*message[:2], [outcomes[places[0]]], *message[3:])) if places else b""


def _is_same(request: Any, first: bytes, second: bytes) -> bool:
    return first == second or same_answer(request, first, second) or _is_alike(first, second, True)


def _is_alike(first: bytes, second: bytes, ordered: bool = False) -> bool:
    """Whether two answers are the same but for what chance decides; `ordered` where orders count."""
    ours, theirs = (read_answer(body, _MOST_BYTES) for body in (first, second))
    return ours[0] == theirs[0] and _as_text(ours[2:], ordered) == _as_text(theirs[2:], ordered)


def _as_text(value: Any, ordered: bool = False) -> str:
    """A value without the numbers of objects, their addresses, texts of exceptions, and, unless `ordered`, orders."""
    if isinstance(value, StandIn):
        return f"{value.kind} {_as_text(_without_number(value), ordered)}"
    if isinstance(value, str):
        return repr(_ADDRESS.sub("0x", value))
    if isinstance(value, dict):
        value = [*value.items()]
    if isinstance(value, (list, tuple, set, frozenset)):
        parts = [_as_text(part, ordered) for part in value]
        is_list = isinstance(value, (list, tuple))
        return f"{type(value).__name__} {parts if ordered and is_list else sorted(parts)}"
    return f"{value:.6g}" if type(value) is float else f"{type(value).__name__} {value!r}"


def _without_number(value: StandIn) -> Any:
    if value.kind == words.ERROR:
        return value.payload[0] if type(value.payload[0]) is str else None
    if value.kind in (words.HANDLE, words.FUNCTION):
        return value.payload[2:]
    return None if type(value.payload) is int else value.payload
