"""A program and its answers as text, for a person who grades."""

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

from gametape.verify.fresh.conversation import LOST, UNREACHED, PlayedProgram
from gametape.verify.fresh.program import CallbackReference, ObjectReference, Program, ProgramStep, object_data
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay.comparison import printable, shown
from gametape.verify.replay.transcript import StandIn

_MOST_TEXT = 600
_MOST_CALLS = 10
_LEAST_CALLS = 2
_KINDS = {
    words.FUNCTION: "a function",
    words.ITERATOR: "an iterator",
    words.ASYNC_ITERATOR: "an asynchronous iterator",
    words.AWAITABLE: "an awaitable",
    words.CONTEXT: "a context manager",
    words.CLASS: "a class",
    words.MODULE: "a module",
    words.YOURS: "a function of the test",
}


def program_text(program: Program, until: int) -> str:
    """The calls of a program up to a step; the first and the last few where there are many."""
    calls = [_call(step, index) for index, step in enumerate(program.steps[: until + 1]) if step.is_call]
    most = _MOST_CALLS
    while most > _LEAST_CALLS and len(_cut(calls, most)) > _MOST_TEXT:
        most -= 1
    return bounded(_cut(calls, most))


def _cut(calls: list[str], most: int) -> str:
    """The calls without their middle."""
    if len(calls) <= most:
        return "; ".join(calls)
    return "; ".join([*calls[: most // 2], "...", *calls[-(most - most // 2) :]])


def answer_text(played: PlayedProgram, step: int) -> str:
    """What a step answered: a value, or the exception's class."""
    answer = played.answers[step]
    if answer == LOST:
        return "no answer"
    if answer == UNREACHED:
        return "not asked, since an object is missing"
    printed = f", printed {shown(answer[4][0])}" if answer[4] and answer[4][0] else ""
    if answer[0] == words.RAISE:
        return bounded(f"raises {(played.errors.get(step) or ('an exception',))[0]}")
    changed = f", arguments became {_value(answer[3])}" if answer[3] else ""
    returned = "an argument itself" if answer[0] == words.SAME else _value(answer[2])
    return bounded(returned + changed + printed)


def bounded(text: str) -> str:
    """The text, cut where it is too long for a table, and with nothing that no encoding has."""
    text = printable(text[: _MOST_TEXT + 1])
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "..."


def _call(step: ProgramStep, index: int) -> str:
    target = step.fields[0]
    if step.operation == words.RUN_PROGRAM:
        return _command(target) + (f" < {shown(step.fields[1])}" if step.fields[1] else "")
    owner = _value(target) if isinstance(target, ObjectReference) else str(target)
    if step.operation in (words.CALL, words.MAKE_ERROR):
        text = f"{step.function or owner}({_arguments(step.fields[1:])})"
    elif step.operation in (words.METHOD, words.SPECIAL, words.OF_CLASS):
        text = f"{owner}.{step.fields[1]}({_arguments(step.fields[2:])})"
    elif step.operation == words.SET:
        text = f"{owner}.{step.fields[1]} = {_value(step.fields[2])}"
    elif step.operation == words.EQUALS:
        text = f"{owner} == {_arguments(step.fields[1:])}"
    elif step.operation == words.NEXT:
        text = f"next({owner})"
    else:
        text = f"{owner}.{step.fields[1]}" if len(step.fields) > 1 else owner
    return f"_{index} = {text}" if step.operation in (words.CALL, words.COPY) and _makes_object(step) else text


def _command(arguments: Sequence[str]) -> str:
    """A command line, with the program's name in place of its path."""
    return " ".join([PurePath(arguments[0]).name, *map(shown, arguments[1:])])


def _makes_object(step: ProgramStep) -> bool:
    return bool(step.recorded) and step.recorded[0] == words.RETURN and isinstance(step.recorded[2], StandIn)


def _arguments(fields: tuple[Any, ...]) -> str:
    parts = [_value(argument) for argument in fields[0]]
    if len(fields) > 1 and fields[1]:
        parts += [f"{name}={_value(argument)}" for name, argument in fields[1].items()]
    return ", ".join(parts)


def _value(value: Any) -> str:
    write = _WRITTEN.get(type(value))
    return shown(value) if write is None else write(value)


def _stand_in(value: StandIn) -> str:
    if value.kind == words.MINE:
        return _value(value.payload)
    if value.kind == words.FUNCTION_OF_TEST:
        return str(value.payload[1])
    if value.kind == words.HANDLE:
        data = object_data(value)
        return "an object" if data is None else f"an object with {_value(data)}"
    return _KINDS.get(value.kind, "an object")


_WRITTEN: dict[type, Callable[[Any], str]] = {
    ObjectReference: lambda value: f"_{value.step}",
    CallbackReference: lambda value: f"callback{value.number}",
    StandIn: _stand_in,
    list: lambda value: f"[{', '.join(map(_value, value[:50]))}]",
    tuple: lambda value: f"({', '.join(map(_value, value[:50]))}{',' if len(value) == 1 else ''})",
    dict: lambda value: f"{{{', '.join(f'{shown(key)}: {_value(item)}' for key, item in list(value.items())[:50])}}}",
}
