"""Arguments of a call against a tool's schema: the part of JSON Schema that our own tools use, and no more.

The answer is one line for the model: what was wrong, and what the tool takes.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

JsonSchema = dict[str, Any]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_HALF_CHARACTERS = re.compile("[\ud800-\udfff]")
_QUOTED = 60


def parameters_schema(required: tuple[str, ...] = (), **properties: JsonSchema) -> JsonSchema:
    """The schema of a tool that takes these arguments and no others."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def argument_problem(schema: JsonSchema, arguments: Any) -> str | None:
    """What is wrong with the arguments, or None."""
    if not isinstance(arguments, dict):
        return f"the arguments must be an object; {describe_expected(schema)}"
    known: Mapping[str, JsonSchema] = schema.get("properties", {})
    for name in arguments:
        if name not in known:
            return f"unknown argument {_quote(name)}; {describe_expected(schema)}"
    for name in schema.get("required", []):
        if name not in arguments:
            return f"argument {name!r} is missing; {describe_expected(schema)}"
    for name, value in arguments.items():
        if fault := _fault(known[name], value):
            return f"argument {name!r} {fault}; {describe_expected(schema)}"
    return None


def describe_expected(schema: JsonSchema) -> str:
    """What a tool takes, in words."""
    required = schema.get("required", [])
    told = [
        f"{name} ({_kind(one)}{'' if name in required else ', optional'})"
        for name, one in schema.get("properties", {}).items()
    ]
    return f"expected: {', '.join(told)}" if told else "expected: no arguments"


def _kind(schema: JsonSchema) -> str:
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    kind = str(schema.get("type", "any"))
    return f"array of {_kind(schema['items'])}" if kind == "array" and "items" in schema else kind


def _fault(schema: JsonSchema, value: Any) -> str | None:
    """What is wrong with one value, as the end of a sentence."""
    kind = schema.get("type")
    if kind is not None and not _is(kind, value):
        return f"must be {_article(_kind(schema))}, not {_quote(value)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"must be one of {', '.join(map(str, schema['enum']))}, not {_quote(value)}"
    if isinstance(value, str):
        return _text_fault(schema, value)
    if isinstance(value, list):
        if len(value) > schema.get("maxItems", math.inf):
            return f"must have at most {schema['maxItems']} entries"
        return next((fault for one in value if (fault := _fault(schema.get("items", {}), one))), None)
    return _number_fault(schema, value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text_fault(schema: JsonSchema, value: str) -> str | None:
    if _HALF_CHARACTERS.search(value):
        return "holds half a character (an unpaired surrogate)"
    if len(value) < schema.get("minLength", 0):
        return f"must have at least {schema['minLength']} characters" if value else "must not be empty"
    if len(value) > schema.get("maxLength", math.inf):
        return f"must have at most {schema['maxLength']:,} characters, not {len(value):,}"
    return None


def _number_fault(schema: JsonSchema, value: float) -> str | None:
    if value < schema.get("minimum", -math.inf):
        return f"must be at least {schema['minimum']}"
    if value > schema.get("maximum", math.inf):
        return f"must be at most {schema['maximum']}"
    return None


def _is(kind: str, value: Any) -> bool:
    if isinstance(value, bool) and kind != "boolean":
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return isinstance(value, _TYPES[kind])


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _quote(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}..."
