"""Calls of programs whose single answers could be guessed."""

import random
from dataclasses import replace
from typing import Any

import pytest

from gametape.verify.fresh.agreement import agrees
from gametape.verify.fresh.bundles import AnsweredProgram, make_bundles
from gametape.verify.fresh.conversation import PlayedProgram
from gametape.verify.fresh.program import Program, ProgramStep
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.proxy_decoys import among_decoys
from gametape.verify.replay.self_comparison import count_self_compared
from gametape.verify.replay.transcript import StandIn
from tests.verify.fresh.frames import FUNCTION, call, transcript


def _answered(value: Any, kept: bool) -> AnsweredProgram:
    answer = (words.RETURN, 0, value, (), None)
    step = ProgramStep(words.CALL, (1, (), None), "shop:price", answer)
    return AnsweredProgram(Program((step,)), PlayedProgram([answer]), "shop:price", True, kept)


def test_a_bundle_has_both_answers_and_both_kept_and_changed_ones() -> None:
    drawn = [_answered(number % 3 == 0, number % 4 == 0) for number in range(60)]
    bundles, _ = make_bundles(drawn, [], random.Random(5))
    assert bundles
    for bundle in bundles:
        assert {program.kept for program in bundle.programs} == {True, False}
        assert len({program.expected.answers[0][2] for program in bundle.programs}) == 2


def test_a_recorded_program_joins_where_all_drawn_ones_are_alike() -> None:
    drawn = [_answered(False, False) for _ in range(12)]
    bundles, _ = make_bundles(drawn, [_answered(True, True)], random.Random(5))
    assert bundles
    assert all(sum(program.kept for program in bundle.programs) == 1 for bundle in bundles)
    assert not make_bundles(drawn, [], random.Random(5))[0]


@pytest.mark.parametrize(
    ("names", "agreed"),
    [
        (("ValueError",), True),
        (("UnicodeDecodeError",), True),
        (("BadName", "ValueError"), True),
        (("BadName", "ValueError", "KeyError"), False),
        (("Refused", "TypeError", "ValueError", "KeyError", "OverflowError"), False),
        (("KeyError",), False),
    ],
)
def test_an_exception_that_is_another_one_too_does_not_agree(names: tuple[str, ...], agreed: bool) -> None:
    answer = (words.RAISE, 0, StandIn(words.ERROR, (names[0], (), None, "", None, {})), (), None)
    expected, actual = PlayedProgram([answer], {0: ("ValueError",)}), PlayedProgram([answer], {0: names})
    expected.known_errors = frozenset({"ValueError", "TypeError", "KeyError", "OverflowError"})
    assert agrees(expected, actual, 0) is agreed


def test_decoys_of_a_text_have_its_words_and_its_letters() -> None:
    candidates, place = among_decoys("one two three")
    others = [other for index, other in enumerate(candidates) if index != place]
    assert any(sorted(other.split()) == ["one", "three", "two"] for other in others)
    assert any(sorted(other) == sorted("one two three") for other in others)
    assert "one two three" not in others


def test_tests_that_ask_the_code_about_its_own_objects_are_counted() -> None:
    vector = StandIn(words.HANDLE, (9 << 20, 8 << 20))
    compared = transcript(
        (words.CALL, (FUNCTION, (1,), None), vector),
        (words.SPECIAL, (9 << 20, "__eq__", (StandIn(words.MINE, 9 << 20),), None), True),
        test="compared",
    )
    told = transcript(call("pear", returned="rap"), test="told")
    assert count_self_compared([compared, told], {"compared", "told"}) == 1
    assert count_self_compared([compared], {"told"}) == 0


def test_the_rare_answer_of_a_bundle_is_that_of_a_held_out_test() -> None:
    drawn = [_answered(False, False) for _ in range(60)]
    known = [replace(_answered(True, True), shown=shown, recorded=True) for shown in (True, True, True, False)]
    bundles, _ = make_bundles(drawn, known, random.Random(5))
    assert len(bundles) == 10
    assert not any(program.shown for bundle in bundles for program in bundle.programs)
    assert make_bundles(drawn, known[:1], random.Random(5))[0]
