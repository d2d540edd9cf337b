"""A transcript as exchanges: what is sent at once, and which answers are due before anything else is sent.

A request may hold an earlier answer, so nothing is sent after a real call before its answer is there. Imports and
look-ups of modules, functions and classes answer nothing that a test checks; they travel with the request after them.
What the test runner asked when it collected the tests is left out: no test sees the answers, and the questions say that
there is a runner.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.proxy_decoys import among_decoys
from gametape.verify.in_sandbox.wire import WireError
from gametape.verify.in_sandbox.wire_channel import pack_frame
from gametape.verify.replay.comparison import same_answer, same_data
from gametape.verify.replay.hostile_frame import read_answer
from gametape.verify.replay.transcript import Frame, StandIn, Transcript, read_frame, write_frame

NEXT_SESSION = pack_frame(b"")
"""Begins another conversation: the worker forgets the objects of the one before."""
STRUCTURAL = frozenset({words.HELLO, words.IMPORT, words.DESCRIBE, words.SIGNATURE, words.SURROUND})
"""Operations whose answers say how the code is built, not what it computes."""
_PROBED = frozenset({"_mock_name", "__wrapped__", "__bases__", "__test__", "pytestmark"})
"""Attributes for which pytest asks each name of a test module."""
_BY_NAME = frozenset({words.FUNCTION, words.CLASS, words.MODULE})


@dataclass(frozen=True)
class Exchange:
    """Some frames of the test, and the frame that the worker owes after each."""

    requests: tuple[bytes, ...]
    """Requests, or one answer to a callback."""
    expected: tuple[bytes, ...]
    sent: bytes
    """The same requests, packed."""
    outermost: bool
    """Whether no earlier request waits for its answer."""
    compared: bool = False
    """Whether it is one comparison of an object with plain data, which is sent among decoys."""
    place: int = 0
    decoys: int = 0

    def renewed(self) -> "Exchange":
        """The same exchange, with new decoys if it has any."""
        if not self.compared:
            return self
        kind, number, operation, (target, (value,)), releases = read_frame(self.requests[0])
        candidates, place = among_decoys(value)
        body = write_frame((kind, number, operation, (target, tuple(candidates)), releases))
        return replace(self, sent=pack_frame(body), place=place, decoys=len(candidates) - 1)

    def without_decoys(self, actual: bytes) -> bytes:
        """The answer to a comparison with the value alone; any other frame as it is."""
        try:
            given = read_answer(actual) if self.compared else ()
        except WireError:
            return actual
        if not given or given[0] != words.RETURN or type(given[2]) is not list or len(given[2]) != self.decoys + 1:
            return actual
        return write_frame((*given[:2], [given[2][self.place]], *given[3:]))

    def accepts(self, position: int, actual: bytes) -> bool:
        """Whether a frame is what the worker owes after the request at this position."""
        expected = self.expected[position]
        if self.compared:
            return _same_outcome(read_frame(expected), actual, self.place, self.decoys)
        return actual == expected or same_answer(read_frame(self.requests[position]), expected, actual)


class _Pair(NamedTuple):
    """A frame of the test and the worker's next one, as bytes and as read."""

    request: bytes
    answer: bytes
    asked: Any
    answered: Any


def split_into_exchanges(frames: Iterable[Frame]) -> tuple[Exchange, ...]:
    """The exchanges of a transcript. What the test sends and the worker never answered is left out."""
    return tuple(_exchanges([*_without_probes(_pairs(frames))]))


def _pairs(frames: Iterable[Frame]) -> Iterator[tuple[bytes, bytes]]:
    request: bytes | None = None
    for frame in frames:
        if frame.by_test:
            request = frame.body
        elif request is not None:
            yield request, frame.body
            request = None


def _without_probes(pairs: Iterable[tuple[bytes, bytes]]) -> Iterator[_Pair]:
    """The pairs, read, without attributes that pytest asked for and did not find before the test began."""
    collecting = True
    for request, answer in pairs:
        asked, answered = read_frame(request), read_frame(answer)
        if collecting and _is_probe(asked, answered):
            continue
        collecting = collecting and _is_structural(asked, answered)
        yield _Pair(request, answer, asked, answered)


def _exchanges(pairs: Iterable[_Pair]) -> Iterator[Exchange]:
    waiting: list[_Pair] = []
    open_requests = 0
    for pair in pairs:
        asked, answered = pair.asked, pair.answered
        compared = asked[0] == words.REQUEST and asked[2] == words.EQUALS and len(asked[3][1]) == 1
        if compared and waiting:
            yield _exchange(waiting, outermost=True)
            waiting = []
        waiting.append(pair)
        if open_requests or compared or not _is_structural(asked, answered):
            yield _exchange(waiting, outermost=not open_requests, compared=compared)
            waiting = []
        open_requests += (asked[0] == words.REQUEST) - (answered[0] != words.CALLBACK)
    if waiting:
        yield _exchange(waiting, outermost=True)


def _exchange(pairs: list[_Pair], outermost: bool, compared: bool = False) -> Exchange:
    requests = tuple(pair.request for pair in pairs)
    answers = tuple(pair.answer for pair in pairs)
    return Exchange(requests, answers, b"".join(map(pack_frame, requests)), outermost, compared)


def _is_structural(asked: Any, answered: Any) -> bool:
    if asked[0] != words.REQUEST or answered[0] != words.RETURN:
        return False
    by_name = isinstance(answered[2], StandIn) and answered[2].kind in _BY_NAME
    return asked[2] in STRUCTURAL or (asked[2] == words.MODULE_ATTRIBUTE and by_name)


def _is_probe(asked: Any, answered: Any) -> bool:
    is_attribute = asked[0] == words.REQUEST and asked[2] == words.GET and answered[0] == words.RAISE
    return bool(is_attribute and asked[3][1] in _PROBED)


def _same_outcome(expected: Any, actual: bytes, place: int, decoys: int) -> bool:
    """Whether the value among the decoys compares as it did with the reference, and no decoy equals what it equals."""
    try:
        given = read_answer(actual)
    except WireError:
        return False
    if expected[0] != words.RETURN or given[0] != words.RETURN:
        return same_data(expected, given)
    outcomes = given[2]
    if type(outcomes) is not list or len(outcomes) != decoys + 1:
        return False
    chosen = outcomes.pop(place)
    forged = same_data(chosen, (False, True)) and any(same_data(other, (False, True)) for other in outcomes)
    return same_data((*expected[:2], expected[2][0], expected[4]), (*given[:2], chosen, given[4])) and not forged


@dataclass(frozen=True)
class Script:
    """A transcript, ready to be replayed."""

    test: str
    exchanges: tuple[Exchange, ...]
    seconds: float
    """How long the reference took."""


def write_script(transcript: Transcript) -> Script:
    return Script(transcript.test, split_into_exchanges(transcript.frames), transcript.seconds)
