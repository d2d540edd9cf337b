"""A tool in few plain words, for models that have to be told about it in text."""

import json
from typing import Any

from gametape.engines.conversation import ToolDefinition

_USUAL = {"path": "a.py", "command": "ls", "pattern": "def main", "query": "def main"}
_BY_TYPE: dict[str, Any] = {"integer": 1, "number": 0.5, "boolean": True, "array": [], "object": {}}


def described(tool: ToolDefinition) -> str:
    """One line for the tool and one for each of its arguments."""
    lines = [f"- {tool['name']}: {tool.get('description', '').strip()}".rstrip(": ")]
    required = _schema(tool).get("required", [])
    for name, schema in _properties(tool).items():
        kind = "one of " + json.dumps(schema["enum"]) if "enum" in schema else _type(schema)
        optional = "" if name in required else ", optional"
        lines.append(f"    {name} ({kind}{optional}): {schema.get('description', '').strip()}".rstrip(": "))
    return "\n".join(lines)


def example(tool: ToolDefinition) -> tuple[str, dict[str, Any]]:
    """A call of this tool, with something in each argument it must have."""
    required = _schema(tool).get("required", [])
    properties = _properties(tool)
    return tool["name"], {name: _sample(name, properties.get(name, {})) for name in required}


def _type(schema: dict[str, Any]) -> str:
    kind = schema.get("type", "any value")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _sample(name: str, schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if "examples" in schema:
        return schema["examples"][0]
    return _BY_TYPE.get(str(schema.get("type")), _USUAL.get(name, "..."))


def _schema(tool: ToolDefinition) -> dict[str, Any]:
    schema = tool.get("parameters")
    return schema if isinstance(schema, dict) else {}


def _properties(tool: ToolDefinition) -> dict[str, dict[str, Any]]:
    """The arguments and what is said of each. JSON schema also allows `true` for one: nothing is said then."""
    properties = _schema(tool).get("properties", {})
    return {name: schema if isinstance(schema, dict) else {} for name, schema in properties.items()}
