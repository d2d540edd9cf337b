"""What counts of log records and warnings: numbers, and words that were given, and not much else beside them."""

from typing import Any

import pytest

from gametape.verify.fresh.agreement import agrees
from gametape.verify.fresh.conversation import PlayedProgram
from gametape.verify.fresh.effects import effects_listened_to, said, says_the_same
from gametape.verify.fresh.guessable import is_guessable
from gametape.verify.fresh.program import Program, ProgramStep
from gametape.verify.in_sandbox import wire_protocol as words

_STEP = ProgramStep(words.CALL, (1, ({"pear": 5}, 3), None), "shop:check", ())
_PROGRAM = Program((_STEP,), listens=frozenset({"records"}))


def _records(*texts: str) -> dict[str, Any]:
    return {"records": [("shop", 30, text, None) for text in texts]}


def _heard(*texts: str) -> Any:
    return said(_PROGRAM, _records(*texts))


@pytest.mark.parametrize(
    ("source", "effects"),
    [
        (b"def test(caplog):\n    pass\n", {"records"}),
        (b"import pytest\ndef test():\n    with pytest.warns(UserWarning):\n        pass\n", {"warnings"}),
        (b"def test(capsys):\n    pass\n", set()),
    ],
)
def test_tests_say_what_they_listen_to(source: bytes, effects: set[str]) -> None:
    assert effects_listened_to([source]) == effects


def test_the_words_of_an_author_do_not_count_and_what_was_computed_does() -> None:
    theirs = _heard("12 of 40 are missing")

    assert says_the_same(theirs, _heard("we lack 12, had 40"))
    assert not says_the_same(theirs, _heard("we lack 13, had 40"))
    assert not says_the_same(theirs, None)


def test_who_says_everything_says_nothing() -> None:
    theirs = _heard("12 of 40 are missing")

    assert not says_the_same(theirs, _heard(*(f"{number} of {number}" for number in range(100))))


def test_nothing_is_heard_where_no_test_listens() -> None:
    assert said(Program((_STEP,)), _records("12 of 40")) is None
    assert said(_PROGRAM, {"warnings": []}) is None


def test_a_record_is_part_of_an_answer() -> None:
    def answer(text: str) -> tuple[Any, ...]:
        return (words.RETURN, 0, None, (), ("", "", _heard(text)))

    expected = PlayedProgram([answer("12 missing")])
    assert agrees(expected, PlayedProgram([answer("12 are missing")]), 0)
    assert not agrees(expected, PlayedProgram([answer("11 missing")]), 0)
    assert not agrees(expected, PlayedProgram([(words.RETURN, 0, None, (), None)]), 0)
    assert not is_guessable(_STEP, answer("12 missing"), set())
    assert is_guessable(_STEP, answer("3 missing"), set()), "an argument comes back"


def test_an_answer_that_says_every_small_number_says_nothing() -> None:
    expected = (("3", "7"), 20)
    every = tuple(str(number) for number in range(10))

    assert says_the_same(expected, (("3", "7", "12"), 30))
    assert not says_the_same(expected, (every, 30))
