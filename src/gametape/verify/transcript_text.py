"""Requests and answers of transcripts as text that people read: `slugify('a b', limit=3)`, `ValueError: empty`."""

from collections.abc import Iterable, Mapping
from typing import Any

from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.in_sandbox.wire import WireError
from gametape.verify.replay.comparison import printable, shown
from gametape.verify.replay.transcript import StandIn, Transcript, read_frame

_LONGEST = 400
_ANSWER_FIELDS = 5
_ERROR_TEXT = 3
_WITH_CLASS = 2
_KINDS = {
    words.FUNCTION: "a function",
    words.ITERATOR: "an iterator",
    words.ASYNC_ITERATOR: "an asynchronous iterator",
    words.AWAITABLE: "an awaitable",
    words.CONTEXT: "a context manager",
    words.CLASS: "a class",
}
_OF_TEST = {
    words.YOURS: "a function of the test",
    words.FUNCTION_OF_TEST: "a function of the test",
    words.ERROR_OF_TEST: "an error",
}
_NO_NAMES: Mapping[int, str] = {}
_PLAIN_REQUESTS = {
    words.HELLO: "the start of the code",
    words.IMPORT: "import {0}",
    words.MODULE_ATTRIBUTE: "{1}",
    words.MODULE_NAMES: "the names in {0}",
}


def object_names(transcript: Transcript) -> dict[int, str]:
    """Names for the objects of a transcript: how the test came by each."""
    names: dict[int, str] = {}
    asked: dict[int, Any] = {}
    for frame in transcript.frames:
        try:
            message = read_frame(frame.body)
        except WireError:
            continue
        if frame.by_test and message[0] == words.REQUEST:
            asked[message[1]] = message
        elif not frame.by_test and message[0] == words.RETURN and message[1] in asked:
            value = message[2]
            _, _, operation, fields, _ = asked[message[1]]
            if operation == words.DESCRIBE and isinstance(value, dict) and type(fields[0]) is int:
                names.setdefault(fields[0], str(value.get("name", "a class")))
            if isinstance(value, StandIn) and (number := _number(value)) is not None:
                names.setdefault(number, describe_request(asked[message[1]], names))
    return names


def describe_request(request: Any, names: Mapping[int, str] = _NO_NAMES) -> str:
    """What the test asked for; where it answered its own function's call, what that function did."""
    if request[0] != words.REQUEST:
        verb = "raised" if request[0] == words.RAISE else "returned"
        return _short(f"a function of the test {verb} {describe_value(request[2], names)}")
    operation, fields = request[2], request[3]
    if operation in _PLAIN_REQUESTS:
        return _short(_PLAIN_REQUESTS[operation].format(*fields))
    first = names.get(fields[0], "an object") if type(fields[0]) is int else describe_value(fields[0], names)
    match operation:
        case words.CALL | words.MAKE_ERROR:
            text = f"{first}({_arguments(fields[1], fields[2], names)})"
        case words.METHOD | words.SPECIAL:
            text = f"{first}.{fields[1]}({_arguments(fields[2], fields[3], names)})"
        case words.GET:
            text = f"{first}.{fields[1]}"
        case words.SET:
            text = f"{first}.{fields[1]} = {describe_value(fields[2], names)}"
        case words.DELETE:
            text = f"del {first}.{fields[1]}"
        case words.EQUALS:
            text = f"{first} == ..."
        case words.NEXT:
            text = f"next({first})"
        case words.AWAIT:
            text = f"await {first}"
        case _:
            text = ", ".join([first, *(describe_value(each, names) for each in fields[1:])])
    return _short(text)


def describe_answer(answer: Any, names: Mapping[int, str] = _NO_NAMES) -> str:
    """What the code answered; also what it printed and what it changed in place, where it did.

    An attempt wrote the answer, so nothing of its form is taken for granted.
    """
    if type(answer) is not tuple or len(answer) != _ANSWER_FIELDS:
        return "no answer"
    text = "one of its arguments" if answer[0] == words.SAME else _describe_result(answer[2], names)
    if answer[3]:
        text += f", with its arguments changed to {describe_value(answer[3], names)}"
    if answer[4]:
        text += f", printed {describe_value(answer[4])}"
    return _short(text)


def _describe_result(value: Any, names: Mapping[int, str]) -> str:
    """What came back: an object by its class and data, since its name would be the request."""
    if not isinstance(value, StandIn) or value.kind in (words.ERROR, words.MODULE, words.YOURS):
        return describe_value(value, names)
    if value.kind != words.HANDLE or type(value.payload) is not tuple or len(value.payload) < _WITH_CLASS:
        return _KINDS.get(value.kind, "an object")
    of_class = names.get(value.payload[1]) if type(value.payload[1]) is int else None
    text = f"an object of {of_class}" if of_class else "an object"
    return f"{text} with {describe_value(value.payload[2], names)}" if len(value.payload) > _WITH_CLASS else text


def raised(answer: Any) -> str | None:
    """The error of an answer, as pytest writes it; None if it is no error."""
    if type(answer) is not tuple or len(answer) != _ANSWER_FIELDS or answer[0] != words.RAISE:
        return None
    return describe_value(answer[2])


def describe_value(value: Any, names: Mapping[int, str] = _NO_NAMES) -> str:
    """A value of a message: plain data as Python writes it, objects by name."""
    if isinstance(value, StandIn):
        return _describe_object(value, names)
    if type(value) in (list, tuple, set, frozenset, dict) and _holds_objects(value):
        return _describe_container(value, names)
    return _short(shown(value))


def _describe_object(value: StandIn, names: Mapping[int, str]) -> str:
    payload = value.payload
    if value.kind == words.ERROR and isinstance(payload, tuple) and len(payload) > _ERROR_TEXT:
        text = payload[_ERROR_TEXT] if isinstance(payload[_ERROR_TEXT], str) else ""
        known = names.get(payload[0]) if type(payload[0]) is int else payload[0]
        name = known if isinstance(known, str) else "an error of the task"
        return _short(f"{name}: {text}" if text else name)
    if value.kind == words.MODULE:
        return f"the module {_short(payload)}" if isinstance(payload, str) else "a module"
    number = _number(value)
    if number is not None and number in names:
        return names[number]
    return _OF_TEST.get(value.kind, "an object")


def _describe_container(value: Any, names: Mapping[int, str]) -> str:
    if isinstance(value, dict):
        inner = [f"{describe_value(key, names)}: {describe_value(own, names)}" for key, own in value.items()]
        return _short("{" + ", ".join(inner) + "}")
    inner = [describe_value(each, names) for each in value]
    opening, closing = "[]" if isinstance(value, list) else "()" if isinstance(value, tuple) else "{}"
    return _short(opening + ", ".join(inner) + closing)


def _arguments(args: Iterable[Any], kwargs: Any, names: Mapping[int, str]) -> str:
    named = dict(kwargs).items() if kwargs else ()
    return ", ".join(
        [
            *(describe_value(each, names) for each in args),
            *(f"{key}={describe_value(own, names)}" for key, own in named),
        ]
    )


def _holds_objects(value: Any) -> bool:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, StandIn):
            return True
        if isinstance(each, dict):
            waiting += [*each.keys(), *each.values()]
        elif isinstance(each, (list, tuple, set, frozenset)):
            waiting += each
    return False


def _number(value: StandIn) -> int | None:
    """The number of the worker's object that a stand-in is for."""
    payload = value.payload[0] if isinstance(value.payload, tuple) and value.payload else value.payload
    return payload if isinstance(payload, int) and value.kind not in (words.YOURS, words.YOUR_ERROR) else None


def _short(text: str) -> str:
    text = printable(text[: _LONGEST + 1])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
