"""The plain form of a turn, for models that have no tool format of their own: text, and a fenced call."""

import json
import re
from collections.abc import Sequence
from typing import Any

from gametape.engines.conversation import Answer, Call, ToolDefinition
from gametape.engines.dialect import Parsed, Tokenizer
from gametape.engines.dialects.calls import Malformed, read_call
from gametape.engines.dialects.describing import described, example
from gametape.engines.dialects.frame import Frame, filled
from gametape.engines.dialects.grammars import fenced_grammar


def fenced(name: str, arguments: dict[str, Any]) -> str:
    """A call as a turn in this form holds it."""
    return f"```tool\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}\n```"


class PlainDialect:
    """Tools are described in the system text, and their results are messages of the user."""

    def __init__(self, tokenizer: Tokenizer, frame: Frame) -> None:
        self.tokenizer = tokenizer
        self.frame = frame

    @property
    def stop_ids(self) -> Sequence[int]:
        return self.frame.stop_ids

    @property
    def header(self) -> Sequence[int]:
        return self.frame.header

    def opening(self, system: str, tools: Sequence[ToolDefinition], user: str) -> list[int]:
        return filled(self.frame.opening, {"system": system + _about(tools), "user": user}, self.tokenizer)

    def told(self, text: str) -> list[int]:
        return filled(self.frame.told, {"user": text}, self.tokenizer)

    def answered(self, answers: Sequence[Answer]) -> list[int]:
        return self.told(
            "\n\n".join(
                f"{'Error from' if answer.failed else 'Result of'} {answer.call.name}:\n{answer.content}"
                for answer in answers
            )
        )

    def closing(self, completion_ids: Sequence[int]) -> list[int]:
        return self.frame.closing(completion_ids)

    def parse(self, completion_ids: Sequence[int]) -> Parsed:
        return parse_fenced(self.tokenizer.decode(completion_ids))

    def written(self, call: Call) -> list[int]:
        return [*self.tokenizer.encode(fenced(call.name, call.arguments)), self.frame.end[0]]

    def grammar(self, tools: Sequence[ToolDefinition]) -> str | None:
        return fenced_grammar([tool["name"] for tool in tools]) if tools else None


def parse_fenced(turn: str) -> Parsed:
    """Read a turn. A call that is not well-formed stays in the text, so that what went wrong can be seen there."""
    try:
        text, documents = _split(turn)
        return Parsed(text.strip(), tuple(read_call(document) for document in documents))
    except Malformed as error:
        return Parsed(turn.strip(), problem=f"Your tool call cannot be read: {error}.")


def _split(turn: str) -> tuple[str, list[str]]:
    """What stands outside of fences, and what in each of them."""
    outside: list[str] = []
    documents: list[str] = []
    inside: list[str] | None = None
    for line in turn.split("\n"):
        bare = line.strip()
        if inside is None and bare == "```tool":
            inside = []
        elif inside is None:
            if re.match(r"```tool\b", bare):
                raise Malformed("```tool must stand on a line of its own, with the JSON on the next line")
            outside.append(line)
        elif bare == "```":
            documents.append("\n".join(inside))
            inside = None
        else:
            inside.append(line)
    if inside is not None:
        raise Malformed("it does not end; close it with ``` on a line of its own")
    return "\n".join(outside), documents


def _about(tools: Sequence[ToolDefinition]) -> str:
    if not tools:
        return ""
    lines = ["", "", "You have these tools:", *(described(tool) for tool in tools), ""]
    lines += ["To use a tool, end your message with a call in exactly this form:", fenced(*example(tools[0])), ""]
    lines += ["Call one tool at a time, then wait: its result comes in the next message."]
    return "\n".join(lines)
