"""Expressions in place of functions: how often they are right, and which calls they are right for."""

import random
from dataclasses import replace
from typing import Any

from gametape.verify.fresh.bundles import AnsweredProgram, compose_calls
from gametape.verify.fresh.conversation import PlayedProgram
from gametape.verify.fresh.guesses import GuessBook, values_at
from gametape.verify.fresh.program import ObjectReference, Program, ProgramStep
from gametape.verify.in_sandbox import wire_protocol as words

_OBJECT = ObjectReference(0, (2, "object"))


def _call(function: str, argument: Any, value: Any) -> tuple[Program, PlayedProgram]:
    answer = (words.RETURN, 0, value, (), None)
    return Program((ProgramStep(words.CALL, (1, (argument,), None), function, answer),)), PlayedProgram([answer])


def _span(numbers: list[int]) -> tuple[Program, PlayedProgram]:
    return _call("m:span", numbers, (min(numbers), max(numbers)))


def _book(*lists: list[int]) -> GuessBook:
    book = GuessBook()
    for numbers in lists:
        book.learn(*_span(numbers), (0,))
    return book


_LISTS = [[1, 2], [3, 7, 9], [2, 2], [5, 6], [4, 1], [9, 3, 5]]


def test_what_is_right_on_all_answers_is_the_work_and_what_is_right_on_some_a_guess() -> None:
    book = _book(*_LISTS)

    assert "('min({0})', '0'), ('max({0})', '0')" in repr(book.work("m:span"))
    assert "('{0}[0]', '0'), ('{0}[-1]', '0')" in repr(book.best("m:span"))


def test_guesses_share_the_calls_on_which_one_of_them_is_right() -> None:
    book = _book(*_LISTS)
    easy, other, hard = (book.right(*_span(numbers), (0,)) for numbers in ([1, 8], [2, 3], [6, 5, 1, 9, 8]))

    assert book.share([easy, other])
    assert not book.share([easy, other, hard])


def test_no_call_rests_on_a_guess_and_all_can_be_answered_where_the_work_is_an_expression() -> None:
    rng = random.Random(4)
    lists = [sorted(rng.sample(range(50), 4)) for _ in range(60)] + [rng.sample(range(50), 4) for _ in range(20)]
    book = _book(*lists[::2])
    drawn = []
    for numbers in lists:
        program, played = _span(numbers)
        guesses = book.right(program, played, (0,))
        drawn.append(AnsweredProgram(program, played, "m:span", False, decisive=(0,), guesses=guesses))

    calls = compose_calls(drawn, lambda _: (), book, 24, rng)

    assert len(calls) >= 20
    assert not any(book.share([program.guesses for program in call.programs]) for call in calls)
    for call in calls:
        asked = [program.program.steps[0].fields[1][0] for program in call.programs]
        assert not all((numbers[0], numbers[-1]) == (min(numbers), max(numbers)) for numbers in asked)


def test_a_program_that_a_guess_answers_is_asked_alone_only_where_there_are_hardly_others() -> None:
    book = _book(*_LISTS)
    drawn = []
    for start in range(30):
        program, played = _span([start, start + 1])
        guesses = book.right(program, played, (0,))
        drawn.append(AnsweredProgram(program, played, "m:span", False, decisive=(0,), guesses=guesses))

    assert len(compose_calls(drawn, lambda _: (), book, 24, random.Random(1))) == 24
    held_out = replace(drawn[0], guesses=None, recorded=True)
    calls = compose_calls(drawn, lambda _: [held_out], book, 24, random.Random(1))
    assert all(held_out in call.programs for call in calls)


def test_an_object_holds_what_it_was_given_less_what_was_taken_out() -> None:
    def method(name: str, arguments: tuple[Any, ...], value: Any) -> ProgramStep:
        return ProgramStep(
            words.METHOD, (_OBJECT, name, arguments, None), f"m:Q.{name}", (words.RETURN, 0, value, (), None)
        )

    steps = (
        ProgramStep(words.CALL, (1, (7,), None), "m:Q", (words.RETURN, 0, None, (), None)),
        method("add", ("a", 3), None),
        method("add", ("b", 1), None),
        method("next", (), "b"),
        method("next", (), "a"),
    )
    played = PlayedProgram([step.recorded for step in steps])

    values = values_at(Program(steps), 4, played)

    assert values["given"] == ["a", "b"]
    assert values["waiting"] == ["b"]
    assert values["stack"] == ["a"]
    assert values["table"] == {"a": 3, "b": 1}
    assert values["made 0"] == 7
