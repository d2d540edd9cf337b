"""Which calls a set holds: no program twice, and the functions in turn."""

import random
from collections import Counter

from gametape.verify.fresh.bundles import AnsweredProgram, FreshCall, asked_once, take_turns
from gametape.verify.fresh.conversation import PlayedProgram
from gametape.verify.fresh.program import Program, ProgramStep
from gametape.verify.fresh.readable_program import program_text
from gametape.verify.in_sandbox import wire_protocol as words
from tests.verify.fresh.conftest import Judged


def answered(function: str, argument: int, kept: bool = False, recorded: bool = False) -> AnsweredProgram:
    step = ProgramStep(words.CALL, (function, (argument,), None), function, ())
    return AnsweredProgram(Program((step,)), PlayedProgram(), function, False, kept, recorded)


def made(function: str, argument: int) -> FreshCall:
    return FreshCall((answered(function, argument),))


def test_a_function_with_few_calls_has_its_share() -> None:
    calls = [made("a", number) for number in range(50)] + [made("b", number) for number in range(6)] + [made("c", 1)]

    taken = take_turns(calls, 12, random.Random(3))

    counts = Counter(call.function for call in taken)
    assert counts["c"] == 1
    assert {counts["a"], counts["b"]} == {5, 6}


def test_no_program_is_taken_twice() -> None:
    taken = take_turns([made("a", number % 5) for number in range(50)], 12, random.Random(3))

    assert len(taken) == 5
    assert len({key for call in taken for key in call.keys}) == 5


def test_a_program_that_kept_its_answer_is_not_taken_twice() -> None:
    calls = [FreshCall((answered("a", number), answered("a", 100, kept=True))) for number in range(5)]

    assert len(take_turns(calls, 5, random.Random(3))) == 1


def test_a_recorded_program_serves_in_several_calls_and_is_asked_once() -> None:
    calls = [FreshCall((answered("a", number), answered("a", 100, True, recorded=True))) for number in range(5)]

    taken = take_turns(calls, 5, random.Random(3))

    assert len(taken) == 5
    assert len(asked_once(taken)) == 6


def test_no_verdict_draws_the_same_twice(durations: Judged) -> None:
    for _ in range(6):
        keys = [one.key for call in durations.judge.draw() for one in call.programs if not one.recorded]
        assert len(keys) == len({*keys})


def test_the_first_calls_of_a_long_program_are_shown() -> None:
    steps = [
        ProgramStep(words.CALL, ("f", (number,), None), "f", (words.RETURN, 0, 1, (), None)) for number in range(40)
    ]

    text = program_text(Program(tuple(steps)), 39)

    assert text.startswith("f(0); f(1); ")
    assert "; ...; " in text
    assert text.endswith("; f(39)")
