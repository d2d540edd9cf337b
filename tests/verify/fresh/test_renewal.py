"""Programs with other data in all places."""

import random
from typing import Any

from gametape.verify.fresh.corpus import ValueCorpus
from gametape.verify.fresh.program import Program, ProgramStep
from gametape.verify.fresh.renewal import renew_program
from gametape.verify.in_sandbox import wire_protocol as words


def _program(*calls: tuple[Any, ...]) -> Program:
    return Program(
        tuple(
            ProgramStep(words.CALL, (1, arguments, None), "sheet:draw", (words.RETURN, 0, 1, (), None))
            for arguments in calls
        )
    )


def _renewed(program: Program, *others: Program, seed: int = 3) -> Program:
    corpus = ValueCorpus()
    corpus.learn([program, *others])
    renewed = renew_program(program, corpus, {}, random.Random(seed))
    assert renewed is not None
    return renewed


def test_every_number_and_every_free_word_is_another_one() -> None:
    program = _program(([["pear", 1234], ["fig", 507]],))
    for seed in range(20):
        ((_, ((first, second),), _),) = (step.fields for step in _renewed(program, seed=seed).steps)
        assert not {*first, *second} & {"pear", 1234, "fig", 507}


def test_the_same_value_becomes_the_same_wherever_it_stands() -> None:
    program = _program(("apricot", 70210), ("apricot", 70210))
    for seed in range(20):
        first, second = (step.fields[1] for step in _renewed(program, seed=seed).steps)
        assert first == second
        assert first[0] != "apricot"


def test_it_is_marked_and_is_no_recorded_program() -> None:
    program = _program(("apricot", 70210))
    renewed = _renewed(program)
    assert renewed.renewed
    assert renewed.key != program.key
