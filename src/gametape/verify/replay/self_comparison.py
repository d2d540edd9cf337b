"""Tests whose only answers are comparisons that the code makes itself: `Vector(1, 2) + Vector(3, 4) == total`."""

from collections.abc import Collection, Iterable

from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay.script import STRUCTURAL
from gametape.verify.replay.transcript import StandIn, Transcript, read_frame

_COMPARISONS = words.COMPARISONS | {"__eq__"}


def count_self_compared(transcripts: Iterable[Transcript], tests: Collection[str]) -> int:
    """How many of some tests learn nothing of the code but what it says about its own objects."""
    return sum(transcript.test in tests and _is_self_compared(transcript) for transcript in transcripts)


def _is_self_compared(transcript: Transcript) -> bool:
    asked: dict[int, int] = {}
    compared = False
    for frame in transcript.frames:
        message = read_frame(frame.body)
        if frame.by_test:
            if message[0] == words.REQUEST:
                asked[message[1]] = _COMPARED if _is_comparison(message[2], message[3]) else message[2]
        elif message[0] == words.RAISE:
            return False
        elif message[0] == words.RETURN:
            operation = asked.get(message[1])
            compared = compared or operation == _COMPARED
            plain = not isinstance(message[2], StandIn) and message[2] is not None
            if operation != _COMPARED and operation not in STRUCTURAL and plain:
                return False
    return compared


_COMPARED = -1
"""In place of an operation: a comparison."""


def _is_comparison(operation: int, fields: tuple[object, ...]) -> bool:
    return operation == words.EQUALS or (operation == words.SPECIAL and fields[1] in _COMPARISONS)
