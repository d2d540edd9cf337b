from decimal import Decimal
from typing import Any

import pytest

from gametape.verify.fresh.agreement import agrees, same_value
from gametape.verify.fresh.conversation import LOST, UNREACHED, PlayedProgram
from gametape.verify.fresh.guessable import is_guessable
from gametape.verify.fresh.program import ProgramStep
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay.transcript import StandIn

HANDLE, CONTEXT = StandIn(words.HANDLE, (5, 6)), StandIn(words.CONTEXT, 9)
NAMED = StandIn(words.HANDLE, (5, 6, (3, 4)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.1 + 0.2, 0.3),
        (float("nan"), float("nan")),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([1.0, {"x": (2.0000000001,)}], [1.0, {"x": (2.0,)}]),
        (HANDLE, StandIn(words.HANDLE, (77, 78))),
        (CONTEXT, HANDLE),
        (StandIn(words.ITERATOR, 4), [1, 2]),
        (NAMED, HANDLE),
        (HANDLE, NAMED),
        (NAMED, StandIn(words.HANDLE, (5, 6, [3, 4]))),
    ],
)
def test_honest_differences_agree(one: Any, other: Any) -> None:
    assert same_value(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0.3, 0.301),
        ([1], (1,)),
        ({"a": 1}, {"a": 2}),
        ("a", "A"),
        (HANDLE, None),
        ([1, 2], [2, 1]),
        (NAMED, StandIn(words.HANDLE, (5, 6, (3, 5)))),
    ],
)
def test_other_answers_differ(one: Any, other: Any) -> None:
    assert not same_value(one, other)


def raised(*names: str) -> PlayedProgram:
    error = StandIn(words.ERROR, (names[0], ("a text",), None, "a text", None, {}))
    return PlayedProgram([(words.RAISE, 0, error, (), None)], {0: names})


def test_an_error_that_is_several_of_the_package_is_none_of_them() -> None:
    unknown = raised("Unknown", "StockError", "Exception")
    unknown.known_errors = frozenset({"Unknown", "Empty", "TooMany", "StockError"})
    assert agrees(unknown, raised("UnknownNut", "Unknown", "StockError", "Exception"), 0)
    assert agrees(unknown, raised("Unknown", "TooMany", "StockError", "Exception"), 0), "another order of bases"
    assert not agrees(unknown, raised("Refused", "Unknown", "Empty", "StockError", "Exception"), 0)
    assert not agrees(unknown, raised("Empty", "Unknown", "TooMany", "StockError", "Exception"), 0)


def test_a_base_that_the_task_never_asks_for_is_its_author_s_own() -> None:
    refused = raised("ValueError")
    refused.known_errors = frozenset({"ValueError"})
    assert agrees(refused, raised("SlugError", "ValueError", "LookupError"), 0)
    refused.known_errors |= {"LookupError"}
    assert not agrees(refused, raised("SlugError", "ValueError", "LookupError"), 0)


def test_a_number_that_signals_when_it_is_compared_does_not_agree() -> None:
    assert not agrees(returned(Decimal("3.5")), returned(Decimal("sNaN")), 0)
    assert not agrees(returned([{"a": Decimal("3.5")}]), returned([{"a": Decimal("sNaN")}]), 0)


def test_what_an_object_holds_may_be_what_it_was_given() -> None:
    made = ProgramStep(words.CALL, (1, (5, 7), {}), "vectors:Vector", ())
    asked = ProgramStep(words.GET, (2, "x"), "vectors:Vector.x", ())
    assert is_guessable(asked, (words.RETURN, 0, 5, (), None), set(), [made])
    assert not is_guessable(asked, (words.RETURN, 0, 35, (), None), set(), [made])


def returned(value: Any, printed: Any = None) -> PlayedProgram:
    return PlayedProgram([(words.RETURN, 0, value, (), printed)])


def test_data_that_no_later_step_asks_for_must_be_there() -> None:
    for value, other in ((NAMED, HANDLE), ([NAMED], [HANDLE])):
        assert agrees(returned(value), returned(other), 0)
        assert not agrees(returned(value), returned(other), 0, asked=False)
        assert agrees(returned(other), returned(value), 0, asked=False)


def test_exceptions_agree_by_class() -> None:
    assert agrees(raised("ValueError"), raised("ValueError"), 0)
    assert agrees(raised("ValueError"), raised("BadDuration", "ValueError"), 0)
    assert agrees(raised("BadDuration", "ValueError"), raised("ValueError"), 0)
    assert agrees(raised("LookupError"), raised("KeyError"), 0)
    assert not agrees(raised("ValueError"), raised("TypeError"), 0)
    assert not agrees(raised("ValueError"), raised("Exception"), 0)
    assert not agrees(raised("ValueError"), returned(None), 0)


def test_printed_text_counts_where_the_reference_prints() -> None:
    assert agrees(returned(1), returned(1, ("debug", "")), 0)
    assert agrees(returned(1, ("3 lines\n", "")), returned(1, ("3 lines", "")), 0)
    assert not agrees(returned(1, ("3 lines\n", "")), returned(1), 0)


def test_no_answer_never_agrees_with_one() -> None:
    for missing in (LOST, UNREACHED):
        assert not agrees(returned(1), PlayedProgram([missing]), 0)


def test_constants_arguments_and_recorded_answers_can_be_guessed() -> None:
    step = ProgramStep(words.CALL, (1, ("text", [3]), {"sep": "-"}), "shop:price", ())

    def guessable(value: Any) -> bool:
        return is_guessable(step, (words.RETURN, 0, value, (), None), {repr("seen")})

    assert all(map(guessable, (None, True, 0, "", [], {}, "text", [3], "-", "seen", HANDLE)))
    assert not any(map(guessable, ("new", 17, [3, 4], {"a": 1})))


def test_a_base_of_an_error_is_right_where_no_test_waits_for_the_error_itself() -> None:
    unknown = raised("Unknown", "StockError", "Exception")
    unknown.awaited_errors = frozenset({"StockError"})
    assert agrees(unknown, raised("StockError", "Exception"), 0)
    unknown.awaited_errors = frozenset({"Unknown", "Empty"})
    assert not agrees(unknown, raised("StockError", "Exception"), 0)
    assert agrees(unknown, raised("Unknown", "StockError", "Exception"), 0)


def test_what_is_printed_and_what_becomes_of_an_argument_cannot_be_guessed() -> None:
    step = ProgramStep(words.CALL, (1, ([3, 1],), None), "module:function", ())
    assert is_guessable(step, (words.RETURN, 0, None, (), None), set())
    assert not is_guessable(step, (words.RETURN, 0, None, ((0, [1, 3]),), None), set())
    assert is_guessable(step, (words.RETURN, 0, None, ((0, []),), None), set())
    printed = (words.RETURN, 0, None, (), ("total: 4\n", ""))
    assert not is_guessable(step, printed, set())
    assert is_guessable(step, printed, {repr("total: 4")}), "some test shows it"


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ((12,), "12"),
        (([4, 5, 6],), 3),
        ((["a", "b"],), ("a", "b")),
        (([7, 9],), 9),
        ((3, 8), (3, 8)),
        ((30, 12), 42),
        (("ab", "cd"), "abcd"),
    ],
)
def test_what_one_expression_makes_of_the_arguments_can_be_guessed(arguments: tuple[Any, ...], value: Any) -> None:
    answer = (words.RETURN, 0, value, (), None)
    step = ProgramStep(words.CALL, (1, arguments, None), "shop:price", answer)
    assert is_guessable(step, answer, set())
    assert not is_guessable(step, (words.RETURN, 0, "something else", (), None), set())


def test_what_an_object_was_given_can_be_guessed_of_each_of_its_methods() -> None:
    answer = (words.RETURN, 0, "a nice day", (), None)
    made = ProgramStep(words.CALL, (1, ("a nice day",), None), "shop:Text", answer)
    asked = ProgramStep(words.METHOD, (2, "polite", (), None), "shop:Text.polite", answer)
    assert is_guessable(asked, answer, set(), [made])
