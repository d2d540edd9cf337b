"""Transcripts for tests, written by hand."""

from typing import Any

from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay.transcript import Frame, StandIn, Transcript, write_frame

FUNCTION = 1 << 20
CLASS = 2 << 20
Exchange = tuple[int, tuple[Any, ...], Any]
LOOK_UPS: tuple[Exchange, ...] = (
    (words.HELLO, (("/workspace",), ("shop",), ("shop:Basket",)), None),
    (words.IMPORT, ("shop",), (None, False)),
    (words.MODULE_ATTRIBUTE, ("shop", "price"), StandIn(words.FUNCTION, (FUNCTION, "price", "price", "shop", None))),
    (words.MODULE_ATTRIBUTE, ("shop", "Basket"), StandIn(words.CLASS, CLASS)),
)


def transcript(*exchanges: Exchange, test: str = "test_shop.py::test") -> Transcript:
    """A transcript of look-ups and these requests, each with what it returned."""
    frames = []
    for number, (operation, fields, value) in enumerate((*LOOK_UPS, *exchanges)):
        frames.append(Frame(True, write_frame((words.REQUEST, number, operation, fields, ()))))
        frames.append(Frame(False, write_frame((words.RETURN, number, value, (), None))))
    return Transcript(test, tuple(frames), 0.0)


def call(*args: Any, returned: Any) -> Exchange:
    return (words.CALL, (FUNCTION, args, None), returned)
