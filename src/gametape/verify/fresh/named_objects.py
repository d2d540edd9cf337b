"""Which object an answer is, where nothing else is asked of it.

`nearest(shops, 6) is shops[1]` and `light_for(40, 100) is Light.AMBER` ask the code for an object and no more: any
object in its place would do as an object. So such an answer is compared by what it is the same as: the objects that the
call was given, and those that tests know by name and that recorded calls answered with. Names are asked for after the
call, and all of them: an object that stands behind every name is none of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from gametape.verify.fresh.program import (
    OBJECT,
    OBJECTS,
    PAYLOAD,
    ObjectReference,
    Program,
    ProgramStep,
    argument_fields,
    object_data,
    part_at,
    parts_of,
)
from gametape.verify.fresh.transcript_reader import UnreadableTranscript, read_requests
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.wire import WireError
from gametape.verify.replay.transcript import StandIn, Transcript

_MOST_NAMES = 24
Name = tuple[str, ...]
"""A module, an attribute of it, and where that is a class an attribute of the class."""


def named_answers(transcripts: Iterable[Transcript]) -> list[Name]:
    """The names under which tests know objects that the code also answered calls with."""
    found: dict[Name, None] = {}
    for transcript in transcripts:
        try:
            requests = read_requests(transcript).requests
        except (UnreadableTranscript, WireError):
            continue
        names: dict[int, Name] = {}
        classes: set[int] = set()
        answered: set[int] = set()
        for request in requests:
            value = _value(request.answer)
            if request.operation == words.MODULE_ATTRIBUTE:
                names |= {number: tuple(request.fields) for number in _numbers(value)}
                classes |= {*_numbers(value)} if isinstance(value, StandIn) and value.kind == words.CLASS else set()
            elif request.operation == words.GET and request.fields[0] in classes:
                names |= dict.fromkeys(_numbers(value), (*names[request.fields[0]], request.fields[1]))
            elif request.operation not in (words.DESCRIBE, words.GET):
                answered |= {number for _, part in parts_of(value) for number in _numbers(part)}
        found |= {names[number]: None for number in sorted(answered & names.keys())}
    return [*found][:_MOST_NAMES]


def with_names(program: Program, names: Sequence[Name]) -> Program:
    """The program that looks these names up at its end, if it has an object as an answer and asks nothing of it."""
    if not any(_bare_objects(step.recorded) for _, step in _unasked(program)):
        return program
    steps = list(program.steps)
    for module, attribute, *members in names:
        steps.append(ProgramStep(words.MODULE_ATTRIBUTE, (module, attribute), "", ()))
        if members:
            owner = ObjectReference(len(steps) - 1, (2, PAYLOAD))
            steps.append(ProgramStep(words.GET, (owner, members[0]), "", ()))
    looked_up = range(len(program.steps), len(steps))
    return replace(program, steps=tuple(steps), look_ups=tuple(looked_up))


def identities(program: Program, answers: Sequence[tuple[Any, ...]], index: int) -> list[Any]:
    """For each object in the answer to a step of which nothing is asked: the arguments that it is, and the names."""
    if index in program.asked or index in program.look_ups or not program.steps[index].is_call:
        return []
    objects = _bare_objects(answers[index])
    if not objects:
        return []
    known = [
        *((reference, number) for reference in _given(program.steps[index]) for number in _found(answers, reference)),
        *((at, number) for at, step in enumerate(program.look_ups) for number in _numbers(_value(answers[step]))),
    ]
    return [tuple(at for at, number in known if number == one) for one in objects]


def _unasked(program: Program) -> Iterator[tuple[int, ProgramStep]]:
    return ((at, step) for at, step in enumerate(program.steps) if step.is_call and at not in program.asked)


def _given(step: ProgramStep) -> list[ObjectReference]:
    """The objects among the arguments of a call. The one whose method it is does not count: whether a method hands
    back its object or a copy is its author's choice."""
    given = [step.fields[index] for index in argument_fields(step.operation, step.fields)]
    return [part for _, part in parts_of(given) if isinstance(part, ObjectReference)]


def _found(answers: Sequence[tuple[Any, ...]], reference: ObjectReference) -> list[int]:
    try:
        number = part_at(answers[reference.step], reference.path)
    except LookupError:
        return []
    return [number] if type(number) is int else []


def _value(answer: tuple[Any, ...]) -> Any:
    return answer[2] if answer and answer[0] == words.RETURN else None


def _bare_objects(answer: tuple[Any, ...]) -> list[int]:
    """The objects of an answer that are no data."""
    return [number for _, part in parts_of(_value(answer)) for number in _numbers(part)]


def _numbers(part: Any) -> list[int]:
    if not isinstance(part, StandIn):
        return []
    if part.kind == words.CLASS:
        return [part.payload] if type(part.payload) is int else []
    if part.kind not in OBJECTS or object_data(part) is not None:
        return []
    number = part_at(part, (OBJECT,))
    return [number] if type(number) is int else []
