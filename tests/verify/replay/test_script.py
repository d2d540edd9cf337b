"""What of a transcript is sent, and what is sent together."""

from typing import Any

from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay.script import split_into_exchanges
from gametape.verify.replay.transcript import Frame, StandIn, read_frame, write_frame
from tests.verify.fresh.frames import FUNCTION, LOOK_UPS

_MISSING = StandIn(words.ERROR, ("AttributeError", (), None, "", None, {}))
Asked = tuple[int, tuple[Any, ...], int, Any]


def frames(*asked: Asked) -> list[Frame]:
    look_ups: list[Asked] = [(operation, fields, words.RETURN, value) for operation, fields, value in LOOK_UPS]
    made = []
    for number, (operation, fields, kind, value) in enumerate([*look_ups, *asked]):
        made.append(Frame(True, write_frame((words.REQUEST, number, operation, fields, ()))))
        made.append(Frame(False, write_frame((kind, number, value, (), None))))
    return made


def probe(name: str) -> Asked:
    return words.GET, (FUNCTION, name), words.RAISE, _MISSING


def call(number: int) -> Asked:
    return words.CALL, (FUNCTION, (number,), None), words.RETURN, number


def sent(*asked: Asked) -> list[list[Any]]:
    """The operations and fields of each exchange."""
    return [
        [read_frame(request)[2:4] for request in exchange.requests] for exchange in split_into_exchanges(frames(*asked))
    ]


def test_look_ups_travel_with_the_call_after_them() -> None:
    first, second = sent(call(1), call(2))

    assert len(first) == len(LOOK_UPS) + 1
    assert second == [(words.CALL, (FUNCTION, (2,), None))]


def test_what_pytest_asked_while_it_collected_is_not_sent() -> None:
    assert sent(probe("__test__"), probe("_mock_name"), call(1)) == sent(call(1))


def test_what_the_test_asks_is_sent() -> None:
    assert sent(probe("colour"), call(1)) != sent(call(1))
    assert sent(call(1), probe("__wrapped__")) != sent(call(1))
    found = words.GET, (FUNCTION, "__wrapped__"), words.RETURN, 5
    assert sent(found, call(1)) != sent(call(1))
