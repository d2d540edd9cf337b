"""Which answers count as the same."""

import datetime
from typing import Any

import pytest

from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay.comparison import find_difference, same_answer, same_data, stands_for_data
from gametape.verify.replay.script import split_into_exchanges
from gametape.verify.replay.transcript import Frame, StandIn, write_frame

_CALL = (words.REQUEST, 3, words.CALL, (5, (), None), ())
_DESCRIBE = (words.REQUEST, 3, words.DESCRIBE, (5,), ())


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        (0.1 + 0.2, 0.3),
        ([1], (1,)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1, 2}, frozenset({1, 2})),
        ({1, 2}, {1, 3}),
        ({(1, "a")}, {(1, "b")}),
        (StandIn(words.HANDLE, (1, 2)), StandIn(words.HANDLE, (3, 2))),
        (datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 1, fold=1)),
        pytest.param(10**5000, 10**5000 + 1, id="too large to print"),
        ([[]], [[[]]]),
    ],
)
def test_data_that_differs(wanted: Any, given: Any) -> None:
    assert not same_data(wanted, given)
    assert not same_data(given, wanted)
    assert same_data(wanted, wanted)


def test_the_order_of_a_set_is_nobodys_choice() -> None:
    left, right = [f"item {n}" for n in range(50)], [f"item {n}" for n in reversed(range(50))]
    assert same_data(set(left), set(right))
    assert same_data({frozenset(left), frozenset("ab")}, {frozenset("ba"), frozenset(right)})


def test_depth_costs_no_recursion() -> None:
    deep: Any = ()
    for _ in range(1500):
        deep = (deep,)
    assert same_data({deep}, {deep})
    assert not same_data(deep, (deep,))


def test_nan_is_itself() -> None:
    assert same_data([float("nan")], [float("nan")])


def test_whatever_comes_back_can_be_shown() -> None:
    deep: Any = []
    for _ in range(1900):
        deep = [deep]
    frames = [write_frame((words.RETURN, 3, value, (), None)) for value in (1, 10**5000, deep, ["x" * 10_000_000])]
    for actual in frames:
        assert len(str(find_difference(write_frame(_CALL), frames[0], actual))) < 10_000


def test_bytes_that_cannot_be_read_are_no_answer() -> None:
    assert not same_answer(_CALL, write_frame((words.RETURN, 3, 1, (), None)), b"\xff\xff")


def _description(**changes: Any) -> bytes:
    fields = {"name": "A", "bases": (), "is_error": False, "hashable": True, "special": ("__eq__",), "doc": "Old."}
    return write_frame((words.RETURN, 3, {**fields, **changes}, (), None))


def test_of_a_class_counts_what_a_test_can_see() -> None:
    expected = _description()
    assert same_answer(_DESCRIBE, expected, _description(doc="New.", special=("__len__", "__eq__")))
    assert not same_answer(_DESCRIBE, expected, _description(special=("__len__",)))
    assert not same_answer(_DESCRIBE, expected, _description(name="B"))
    assert not same_answer(_DESCRIBE, expected, _description(special=[1]))


def _frames(*pairs: tuple[Any, Any]) -> list[Frame]:
    return [Frame(side == 0, write_frame(message)) for pair in pairs for side, message in enumerate(pair)]


def test_nothing_is_sent_before_the_answer_to_a_call() -> None:
    function = StandIn(words.FUNCTION, (1, "f", "f", "m", None))
    exchanges = split_into_exchanges(
        _frames(
            ((words.REQUEST, 0, words.IMPORT, ("m",), ()), (words.RETURN, 0, (None, False), (), None)),
            ((words.REQUEST, 1, words.MODULE_ATTRIBUTE, ("m", "f"), ()), (words.RETURN, 1, function, (), None)),
            ((words.REQUEST, 2, words.CALL, (1, (2,), None), ()), (words.RETURN, 2, 4, (), None)),
            ((words.REQUEST, 3, words.MODULE_ATTRIBUTE, ("m", "LIMIT"), ()), (words.RETURN, 3, 7, (), None)),
            ((words.REQUEST, 4, words.CALL, (1, (4,), None), ()), (words.RAISE, 4, None, (), None)),
        )
    )
    assert [len(exchange.expected) for exchange in exchanges] == [3, 1, 1]


def test_a_comparison_is_sent_among_decoys_and_no_decoy_may_equal_too() -> None:
    (exchange,) = split_into_exchanges(
        _frames(
            ((words.REQUEST, 0, words.EQUALS, (9, ("abc",)), ()), (words.RETURN, 0, [(False, True)], (), None)),
        )
    )
    sent = exchange.renewed()
    assert sent.decoys >= 3

    def answer(outcomes: list[tuple[bool, bool]]) -> bytes:
        return write_frame((words.RETURN, 0, outcomes, (), None))

    right = [(False, place == sent.place) for place in range(sent.decoys + 1)]
    assert sent.accepts(0, answer(right))
    assert not sent.accepts(0, answer([(False, True)] * (sent.decoys + 1)))
    assert not sent.accepts(0, answer([(False, False)] * (sent.decoys + 1)))
    assert not sent.accepts(0, answer(right[:-1]))


def test_an_object_never_stands_for_a_number_or_a_text() -> None:
    own = StandIn(words.HANDLE, (1, 2))
    for wanted, given in ((1.0, own), ("a", own), ([1, None], [1, own]), ({"a": (2,)}, {"a": (own,)})):
        assert stands_for_data(wanted, given)
    for wanted, given in ((own, own), ([1], own), ((1,), (2.0,)), ([own, 1], [own, 2])):
        assert not stands_for_data(wanted, given)
