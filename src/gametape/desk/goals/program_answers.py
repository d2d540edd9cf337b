"""What a program of recorded calls answers, as text that can be compared.

An answer is what a call returns or raises, what becomes of its arguments, and what it prints. Of an iterator and of a
context it is all that was asked of it, and the function is the one that gave it. Objects count by their data alone,
whatever their numbers.
"""

from collections.abc import Sequence
from typing import Any

from gametape.verify.fresh.conversation import PlayedProgram
from gametape.verify.fresh.program import ObjectReference, Program, object_data, parts_of
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.wire_containers import Unbuilt
from gametape.verify.replay.transcript import StandIn

RAISED = "raised"
_LONGEST = 2000
_LASTING = (words.NEXT, words.EXIT)
"""Operations that end the life of what a function gave."""
_NOT_ASKED = (words.AWAITABLE, words.CONTEXT, words.ASYNC_ITERATOR)
"""Objects whose answers come later, in ways that no program says."""


def function_of(program: Program) -> str:
    """The function whose answers a program shows."""
    given = _given_by(program)
    return program.steps[-1 if given is None else given].function


def recorded_answer(program: Program) -> str | None:
    """What the recorded calls answered; None where that was not recorded."""
    answers = [step.recorded for step in program.steps]
    return _text(program, answers) if all(answers) else None


def played_answer(program: Program, played: PlayedProgram) -> str | None:
    """What the calls answered when they were played; None where the program did not come to its end."""
    whole = len(played.answers) == len(program.steps) and played.is_whole
    return _text(program, played.answers) if whole else None


def raised(answer: str) -> bool:
    return answer.startswith(RAISED)


def is_look(program: Program) -> bool:
    """Whether a program ends with a look at an attribute that is nobody's business, as pytest and mocks look."""
    last = program.steps[-1]
    return last.operation == words.GET and str(last.fields[1]).startswith("_")


def answers_later(program: Program) -> bool:
    """Whether a program ends with an object that says nothing yet."""
    answer = program.steps[-1].recorded
    return bool(answer) and any(
        isinstance(part, StandIn) and part.kind in _NOT_ASKED for _, part in parts_of(answer[2])
    )


def changed_steps(program: Program, original: Program) -> set[int]:
    """The steps whose arguments are others than in the program from which it was drawn."""
    pairs = zip(program.steps, original.steps, strict=True)
    return {index for index, (new, old) in enumerate(pairs) if new.fields != old.fields}


def _given_by(program: Program) -> int | None:
    """The step that gave the iterator or context with which the program ends."""
    last = program.steps[-1]
    given = last.fields[0] if last.operation in _LASTING else None
    return given.step if isinstance(given, ObjectReference) and program.steps[given.step].function else None


def _text(program: Program, answers: Sequence[tuple[Any, ...]]) -> str:
    if _given_by(program) is None:
        return _of_one(answers[-1])
    given = program.steps[-1].fields[0]
    asked = [index for index, step in enumerate(program.steps) if step.is_call and step.fields[:1] == (given,)]
    return " ".join(_of_one(answers[index]) for index in asked)


def _of_one(answer: tuple[Any, ...]) -> str:
    kind, _, value, updates, printed = answer
    if kind == words.RAISE:
        text = value.payload[3] if isinstance(value, StandIn) and value.kind == words.ERROR else ""
        return f"{RAISED} {str(text)[:_LONGEST]}"
    changed = [update for update in updates or () if type(update[0]) is int]
    return repr((kind, _plain(value), _plain(changed), printed[:2] if printed else None))


def _plain(value: Any) -> Any:
    if isinstance(value, StandIn):
        return ("object", value.kind, _plain(object_data(value)))
    if isinstance(value, Unbuilt):
        return ("object", _plain(value.items))
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(_plain, value)]
    if isinstance(value, dict):
        return [("key", _plain(key), _plain(item)) for key, item in value.items()]
    return value
