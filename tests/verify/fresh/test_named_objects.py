"""An object of which nothing is asked is compared by what it is the same as."""

from typing import Any

from gametape.verify.fresh.conversation import PlayedProgram
from gametape.verify.fresh.differences import differing_steps
from gametape.verify.fresh.named_objects import with_names
from gametape.verify.fresh.program import OBJECT, ObjectReference, Program, ProgramStep
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay.transcript import StandIn


def handle(number: int) -> StandIn:
    return StandIn(words.HANDLE, (number, 1))


def played(*values: Any) -> PlayedProgram:
    return PlayedProgram([(words.RETURN, 0, value, (), None) for value in values])


def call(function: int, *args: Any, answer: Any = None) -> ProgramStep:
    return ProgramStep(words.CALL, (function, args, None), "module:function", (words.RETURN, 0, answer, (), None))


def test_an_answer_is_the_member_that_no_other_name_gives() -> None:
    program = with_names(
        Program((call(5, 40, answer=handle(7)),)), [("lights", "Light", "RED"), ("lights", "Light", "A")]
    )
    light = StandIn(words.CLASS, 1)
    assert [step.operation for step in program.steps[1:]] == [words.MODULE_ATTRIBUTE, words.GET] * 2
    red, amber = handle(20), handle(21)
    expected = played(amber, light, red, light, amber)
    assert differing_steps(program, expected, played(handle(4), light, handle(3), light, handle(4))) == ()
    assert differing_steps(program, expected, played(handle(3), light, handle(3), light, handle(4))) == (0,)
    assert differing_steps(program, expected, played(handle(3), light, handle(3), light, handle(3))) == (0,), "both"
    assert differing_steps(program, expected, played(handle(9), light, handle(3), light, handle(4))) == (0,), "neither"


def test_an_answer_is_the_argument_that_it_is() -> None:
    given = [ObjectReference(step, (2, OBJECT)) for step in (0, 1)]
    program = Program((call(5, 1), call(5, 2), call(6, given, answer=handle(7))))
    expected = played(handle(10), handle(11), handle(11))
    assert differing_steps(program, expected, played(handle(1), handle(2), handle(2))) == ()
    assert differing_steps(program, expected, played(handle(1), handle(2), handle(1))) == (2,)
    assert differing_steps(program, expected, played(handle(1), handle(2), handle(3))) == (2,)


def test_an_object_that_is_asked_may_be_a_copy() -> None:
    made = ObjectReference(1, (2, OBJECT))
    asked = ProgramStep(words.GET, (made, "size"), "module:Thing.size", (words.RETURN, 0, 3, (), None))
    program = Program((call(5, 1), call(6, ObjectReference(0, (2, OBJECT)), answer=handle(7)), asked))
    assert differing_steps(program, played(handle(1), handle(1), 3), played(handle(1), handle(2), 3)) == ()
