"""The steps of a program that are answered otherwise than by the reference.

An error may come early or late: where the reference returns an iterator whose first element raises, a call that raises
the same at once is as good, and the reverse.
"""

from collections.abc import Sequence

from gametape.verify.fresh.agreement import agrees, is_compared, raises_early
from gametape.verify.fresh.conversation import UNREACHED, PlayedProgram
from gametape.verify.fresh.named_objects import identities
from gametape.verify.fresh.player import ProgramPlayer
from gametape.verify.fresh.program import OBJECT, ObjectReference, Program, ProgramStep
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay.transcript import StandIn

_VALUE = (2, OBJECT)
"""The path to the object that a step returned."""


def differing_steps(program: Program, expected: PlayedProgram, played: PlayedProgram) -> tuple[int, ...]:
    """The steps whose answers do not agree with the expected ones."""
    found: list[int] = []
    early: set[int] = set()
    for index, step in enumerate(program.steps):
        if not is_compared(step.operation, step.fields):
            continue
        if agrees(expected, played, index, asked=index in program.asked):
            if identities(program, expected.answers, index) != identities(program, played.answers, index):
                found.append(index)
            continue
        following = _first_element(program, index)
        if following is not None and raises_early(expected, following, played, index):
            early.add(index)
        elif not (early and played.answers[index] == UNREACHED and early & step.needs):
            found.append(index)
    return tuple(found)


def _first_element(program: Program, index: int) -> int | None:
    """The step that asks for the first element of what a step returned."""
    wanted = ObjectReference(index, _VALUE)
    return next(
        (
            number
            for number, step in enumerate(program.steps[index + 1 :], index + 1)
            if step.operation == words.NEXT and step.fields[0] == wanted
        ),
        None,
    )


def late_errors(
    programs: Sequence[Program],
    expected: Sequence[PlayedProgram],
    played: Sequence[PlayedProgram],
    player: ProgramPlayer,
) -> set[int]:
    """The positions of programs that differ only in this: where the reference raises, an iterator came whose first
    element raises the same. They are played again, up to that element."""
    late: dict[int, tuple[int, Program]] = {}
    for position, (program, ours, theirs) in enumerate(zip(programs, expected, played, strict=True)):
        steps = differing_steps(program, ours, theirs)
        if len(steps) == 1 and ours.answers[steps[0]][0] == words.RAISE and _is_iterator(theirs, steps[0]):
            asked = ProgramStep(words.NEXT, (ObjectReference(steps[0], _VALUE),), "", ())
            shorter = Program((*program.steps[: steps[0] + 1], asked), program.callbacks)
            late[position] = steps[0], shorter
    again = player.play([program for _, program in late.values()])
    return {
        position
        for (position, (step, _)), answers in zip(late.items(), again, strict=True)
        if raises_early(expected[position], step, answers, step + 1)
    }


def _is_iterator(played: PlayedProgram, step: int) -> bool:
    answer = played.answers[step]
    return answer[0] == words.RETURN and isinstance(answer[2], StandIn) and answer[2].kind == words.ITERATOR
