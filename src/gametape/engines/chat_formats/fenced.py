"""The chat format for models without a tool format of their own: a turn is text and a call in a fenced block."""

import json
import re
from collections.abc import Sequence
from typing import Any

from gametape.engines.chat_formats.protocol import ParsedTurn, Tokenizer
from gametape.engines.chat_formats.tool_call_grammar import fenced_grammar
from gametape.engines.chat_formats.tool_calls import MalformedCall, parse_call
from gametape.engines.chat_formats.turn_frame import FramedChatFormat, encode_pieces
from gametape.engines.conversation import Call, ToolDefinition, ToolResponse

_EXAMPLES = {"path": "a.py", "command": "ls", "pattern": "def main", "query": "def main"}
_EXAMPLES_BY_TYPE: dict[str, Any] = {"integer": 1, "number": 0.5, "boolean": True, "array": [], "object": {}}


def describe_tool(tool: ToolDefinition) -> str:
    """One line for the tool and one for each of its arguments."""
    lines = [f"- {tool['name']}: {tool.get('description', '').strip()}".rstrip(": ")]
    required = _schema(tool).get("required", [])
    for name, schema in _properties(tool).items():
        kind = "one of " + json.dumps(schema["enum"]) if "enum" in schema else _type(schema)
        optional = "" if name in required else ", optional"
        lines.append(f"    {name} ({kind}{optional}): {schema.get('description', '').strip()}".rstrip(": "))
    return "\n".join(lines)


def example_call(tool: ToolDefinition) -> tuple[str, dict[str, Any]]:
    """The name and an example of each required argument."""
    required = _schema(tool).get("required", [])
    properties = _properties(tool)
    return tool["name"], {name: _example_value(name, properties.get(name, {})) for name in required}


def _type(schema: dict[str, Any]) -> str:
    kind = schema.get("type", "any value")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _example_value(name: str, schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if "examples" in schema:
        return schema["examples"][0]
    return _EXAMPLES_BY_TYPE.get(str(schema.get("type")), _EXAMPLES.get(name, "..."))


def _schema(tool: ToolDefinition) -> dict[str, Any]:
    schema = tool.get("parameters")
    return schema if isinstance(schema, dict) else {}


def _properties(tool: ToolDefinition) -> dict[str, dict[str, Any]]:
    """The schema of each argument; empty where JSON schema has `true` for one."""
    properties = _schema(tool).get("properties", {})
    return {name: schema if isinstance(schema, dict) else {} for name, schema in properties.items()}


def write_fenced_call(name: str, arguments: dict[str, Any]) -> str:
    """A call as a turn in this format contains it."""
    return f"```tool\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}\n```"


class FencedChatFormat(FramedChatFormat[Tokenizer]):
    """Tools are described in the system text, and their results are messages of the user."""

    def encode_opening(self, system: str, tools: Sequence[ToolDefinition], user: str) -> list[int]:
        return encode_pieces(
            self.frame.opening, {"system": system + tool_instructions(tools), "user": user}, self.tokenizer
        )

    def encode_tool_responses(self, responses: Sequence[ToolResponse]) -> list[int]:
        return self.encode_user(tool_results_text(responses))

    def parse(self, completion_ids: Sequence[int]) -> ParsedTurn:
        return parse_fenced(self.tokenizer.decode(completion_ids))

    def encode_call(self, call: Call) -> list[int]:
        return [*self.tokenizer.encode(write_fenced_call(call.name, call.arguments)), self.frame.end[0]]

    def grammar(self, tools: Sequence[ToolDefinition]) -> str | None:
        return fenced_grammar([tool["name"] for tool in tools]) if tools else None


def parse_fenced(turn: str) -> ParsedTurn:
    """Parse a turn. A malformed call stays in the text, so that the mistake can be seen there."""
    try:
        text, documents = _split(turn)
        return ParsedTurn(text.strip(), tuple(parse_call(document) for document in documents))
    except MalformedCall as error:
        return ParsedTurn(turn.strip(), problem=f"Your tool call cannot be read: {error}.")


def _split(turn: str) -> tuple[str, list[str]]:
    """The text outside of fences, and the content of each fence."""
    outside: list[str] = []
    documents: list[str] = []
    inside: list[str] | None = None
    for line in turn.split("\n"):
        bare = line.strip()
        if inside is None and bare == "```tool":
            inside = []
        elif inside is None:
            if re.match(r"```tool\b", bare):
                raise MalformedCall("```tool must stand on a line of its own, with the JSON on the next line")
            outside.append(line)
        elif bare == "```":
            documents.append("\n".join(inside))
            inside = None
        else:
            inside.append(line)
    if inside is not None:
        raise MalformedCall("it does not end; close it with ``` on a line of its own")
    return "\n".join(outside), documents


def tool_results_text(responses: Sequence[ToolResponse]) -> str:
    """Results of calls as a message of the user."""
    return "\n\n".join(
        f"{'Error from' if response.failed else 'Result of'} {response.call.name}:\n{response.content}"
        for response in responses
    )


def tool_instructions(tools: Sequence[ToolDefinition]) -> str:
    """What is added to the system text: the tools, and how they are called."""
    if not tools:
        return ""
    described, example = "\n".join(describe_tool(tool) for tool in tools), write_fenced_call(*example_call(tools[0]))
    return (
        f"\n\nYou have these tools:\n{described}\n\nTo use a tool, end your message with a call in exactly this form:\n"
        f"{example}\n\nCall one tool at a time, then wait: its result comes in the next message."
    )
