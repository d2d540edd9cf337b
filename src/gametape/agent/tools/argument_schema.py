"""Check the arguments of a tool call against the tool's JSON schema, with `jsonschema`.

The answer is one line for the model: what is wrong with which argument, and what the tool takes. Two rules are stricter
than JSON Schema: 1.0 is no integer, and strings hold no unpaired surrogates. Only the keywords in `_KEYWORDS` count: a
schema may come from a hostile MCP server, whose `$ref` would fetch a URL on the host and whose `pattern` would run.
"""

import math
import re
from collections.abc import Callable
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.exceptions import UnknownType

JsonSchema = dict[str, Any]

_SURROGATES = re.compile("[\ud800-\udfff]")
_QUOTED = 60
_HALF_CHARACTER = "holds half a character (an unpaired surrogate)"
_TYPES: dict[str, Callable[[Any, Any], bool]] = {
    "string": lambda _, value: isinstance(value, str) and not _SURROGATES.search(value),
    "integer": lambda _, value: type(value) is int,
    "number": lambda _, value: type(value) in (int, float) and math.isfinite(value),
}
_KEYWORDS = (
    "type",
    "enum",
    "minLength",
    "maxLength",
    "items",
    "maxItems",
    "minimum",
    "maximum",
    "properties",
    "required",
)
_Validator = validators.create(
    meta_schema={},
    validators={keyword: Draft202012Validator.VALIDATORS[keyword] for keyword in _KEYWORDS},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many(_TYPES),
)
_PROBLEMS: dict[str, Callable[[ValidationError], str]] = {
    "type": lambda error: _type_problem(error.schema, error.instance),
    "enum": lambda error: f"must be one of {', '.join(map(str, error.validator_value))}, not {_quote(error.instance)}",
    "minLength": lambda error: (
        f"must have at least {error.validator_value} characters" if error.instance else "must not be empty"
    ),
    "maxLength": lambda error: f"must have at most {error.validator_value:,} characters, not {len(error.instance):,}",
    "maxItems": lambda error: f"must have at most {error.validator_value} entries",
    "minimum": lambda error: f"must be at least {error.validator_value}",
    "maximum": lambda error: f"must be at most {error.validator_value}",
}


def parameters_schema(required: tuple[str, ...] = (), **properties: JsonSchema) -> JsonSchema:
    """The schema of a tool that takes these arguments and no others."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def argument_problem(schema: JsonSchema, arguments: Any) -> str | None:
    """What is wrong with the arguments, or None."""
    if not isinstance(arguments, dict):
        return f"the arguments must be an object; {describe_expected(schema)}"
    properties: dict[str, JsonSchema] = schema.get("properties", {})
    for name in arguments:
        if name not in properties:
            return f"unknown argument {_quote(name)}; {describe_expected(schema)}"
    for name in schema.get("required", []):
        if name not in arguments:
            return f"argument {name!r} is missing; {describe_expected(schema)}"
    for name, value in arguments.items():
        if problem := _value_problem(properties[name], value):
            return f"argument {name!r} {problem}; {describe_expected(schema)}"
    return None


def _value_problem(schema: JsonSchema, value: Any) -> str | None:
    """What is wrong with one value, as the end of a sentence. A type that JSON Schema does not know allows anything."""
    try:
        if error := next(_Validator(schema).iter_errors(value), None):
            return _problem(error)
    except UnknownType:
        pass
    return _HALF_CHARACTER if _has_surrogates(value) else None


def _has_surrogates(value: Any) -> bool:
    if isinstance(value, str):
        return bool(_SURROGATES.search(value))
    if isinstance(value, list | dict):
        return any(map(_has_surrogates, value.items() if isinstance(value, dict) else value))
    return isinstance(value, tuple) and any(map(_has_surrogates, value))


def describe_expected(schema: JsonSchema) -> str:
    """What a tool takes, in words."""
    required = schema.get("required", [])
    arguments = [
        f"{name} ({_kind(argument)}{'' if name in required else ', optional'})"
        for name, argument in schema.get("properties", {}).items()
    ]
    return f"expected: {', '.join(arguments)}" if arguments else "expected: no arguments"


def _problem(error: ValidationError) -> str:
    """What is wrong with one value, as the end of a sentence on one line."""
    describe = _PROBLEMS.get(error.validator)
    return describe(error) if describe else f"does not match {error.validator} {_quote(error.validator_value)}"


def _type_problem(schema: JsonSchema, value: Any) -> str:
    if schema["type"] == "string" and isinstance(value, str):
        return _HALF_CHARACTER
    kind = _kind(schema)
    return f"must be {'an' if kind[0] in 'aeiou' else 'a'} {kind}, not {_quote(value)}"


def _kind(schema: JsonSchema) -> str:
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    kind = str(schema.get("type", "any"))
    return f"array of {_kind(schema['items'])}" if kind == "array" and "items" in schema else kind


def _quote(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}..."
