"""Parses tool calls that a model wrote as JSON; the errors are written for the model."""

import json
import math
from typing import Any, NoReturn

from gametape.engines.conversation import Call

_MAX_DEPTH = 32


class MalformedCall(Exception):
    """What was wrong with a call, in words for the model, on one line."""


def parse_call(document: str, arguments_field: str = "arguments") -> Call:
    """The call in a JSON document `{"name": ..., "arguments": {...}}`; arguments may be left out."""
    value = _load_call(document)
    if not isinstance(value, dict):
        raise MalformedCall(f'it is {_kind(value)}, not an object with "name" and "{arguments_field}"')
    name, arguments = value.get("name"), value.get(arguments_field, {})
    if not isinstance(name, str) or not name:
        raise MalformedCall('it has no "name" that is a string')
    if unknown := [key for key in value if key not in {"name", arguments_field}]:
        raise MalformedCall(
            f'it has only "name" and "{arguments_field}", but here is {json.dumps(unknown[0][:40])} as well'
        )
    if not isinstance(arguments, dict):
        raise MalformedCall(f'its "{arguments_field}" is {_kind(arguments)}, not an object')
    return Call(name=name, arguments=arguments)


def _load_call(document: str) -> Any:
    try:
        value = load_finite_json(document)
    except json.JSONDecodeError as error:
        raise MalformedCall(f"it is not valid JSON: {error.msg}, line {error.lineno} column {error.colno}") from None
    except ValueError as error:
        raise MalformedCall(f"it is not valid JSON: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise MalformedCall("it is nested too deeply") from None
    _check(value)
    return value


def load_finite_json(text: str) -> Any:
    """JSON without NaN and infinite numbers; raises `ValueError` for those too."""
    return json.loads(text, parse_constant=_no_constant, parse_float=_finite)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _finite(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def _check(value: Any) -> None:
    """Refuse what JSON allows and other programs do not take: deep nesting, halves of surrogate pairs."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, str):
                try:
                    item.encode()
                except UnicodeEncodeError:
                    raise MalformedCall("it holds half of a surrogate pair; write the whole character") from None
            elif isinstance(item, dict):
                below += [*item.keys(), *item.values()]
            elif isinstance(item, list):
                below += item
        if not below:
            return
        level = below
    raise MalformedCall("it is nested too deeply")


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
