"""Code in a fenced block as a call: the form in which small models answer a question about code unasked."""

import re
from collections.abc import Sequence
from dataclasses import replace

from gametape.engines.conversation import Answer, Call, Model, ToolDefinition
from gametape.engines.dialect import Dialect, Parsed
from gametape.engines.token_conversation import TokenModel

_BLOCK = re.compile(r"^```[ \t]*(?:python|py)?[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def in_blocks(model: Model, tool: str, argument: str) -> Model:
    """The same model, whose first fenced block in a turn is a call of this tool with the block as its argument.

    Only for models that are given token ids; others call tools in their server's own way, which is left alone.
    """
    if not isinstance(model, TokenModel):
        return model
    return replace(model, dialect=BlockDialect(model.dialect, tool, argument))


class BlockDialect:
    """Another dialect, in which one tool needs no description: whoever writes code has called it. A call in the other
    dialect's own form goes before."""

    def __init__(self, inner: Dialect, tool: str, argument: str) -> None:
        self._inner, self._tool, self._argument = inner, tool, argument

    @property
    def stop_ids(self) -> Sequence[int]:
        return self._inner.stop_ids

    @property
    def header(self) -> Sequence[int]:
        return self._inner.header

    def opening(self, system: str, tools: Sequence[ToolDefinition], user: str) -> list[int]:
        return self._inner.opening(system, [tool for tool in tools if tool["name"] != self._tool], user)

    def told(self, text: str) -> list[int]:
        return self._inner.told(text)

    def answered(self, answers: Sequence[Answer]) -> list[int]:
        return self._inner.answered(answers)

    def closing(self, completion_ids: Sequence[int]) -> list[int]:
        return self._inner.closing(completion_ids)

    def parse(self, completion_ids: Sequence[int]) -> Parsed:
        parsed = self._inner.parse(completion_ids)
        if parsed.calls or parsed.problem or not (block := _BLOCK.search(parsed.text)):
            return parsed
        return Parsed(parsed.text, (Call(self._tool, {self._argument: block[1]}),))

    def written(self, call: Call) -> list[int]:
        return self._inner.written(call)

    def grammar(self, tools: Sequence[ToolDefinition]) -> str | None:
        return self._inner.grammar(tools)
