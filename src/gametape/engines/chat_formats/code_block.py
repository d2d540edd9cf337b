"""A chat format in which a fenced code block is a tool call: small models answer questions about code in this form."""

import re
from collections.abc import Sequence
from dataclasses import replace

from gametape.engines.chat_formats.protocol import ChatFormat, ParsedTurn
from gametape.engines.conversation import Call, Model, ToolDefinition, ToolResponse
from gametape.engines.token_conversation import TokenModel

_BLOCK = re.compile(r"^```[ \t]*(?:python|py)?[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def with_code_block_calls(model: Model, tool: str, argument: str) -> Model:
    """The same model, whose first fenced block in a turn is a call of this tool with the block as its argument.

    Only for models that take token ids; the others call tools in their server's own way and are returned unchanged.
    """
    if not isinstance(model, TokenModel):
        return model
    return replace(model, chat_format=CodeBlockChatFormat(model.chat_format, tool, argument))


class CodeBlockChatFormat:
    """A chat format around another, in which a code block calls one tool, which is not described to the model.

    A call in the inner format's own form goes first.
    """

    def __init__(self, inner: ChatFormat, tool: str, argument: str) -> None:
        self._inner, self._tool, self._argument = inner, tool, argument

    @property
    def stop_ids(self) -> Sequence[int]:
        return self._inner.stop_ids

    @property
    def header(self) -> Sequence[int]:
        return self._inner.header

    def encode_opening(self, system: str, tools: Sequence[ToolDefinition], user: str) -> list[int]:
        return self._inner.encode_opening(system, [tool for tool in tools if tool["name"] != self._tool], user)

    def encode_user(self, text: str) -> list[int]:
        return self._inner.encode_user(text)

    def encode_tool_responses(self, responses: Sequence[ToolResponse]) -> list[int]:
        return self._inner.encode_tool_responses(responses)

    def close_turn(self, completion_ids: Sequence[int]) -> list[int]:
        return self._inner.close_turn(completion_ids)

    def parse(self, completion_ids: Sequence[int]) -> ParsedTurn:
        parsed = self._inner.parse(completion_ids)
        if parsed.calls or parsed.problem or not (block := _BLOCK.search(parsed.text)):
            return parsed
        return ParsedTurn(parsed.text, (Call(self._tool, {self._argument: block[1]}),))

    def encode_call(self, call: Call) -> list[int]:
        return self._inner.encode_call(call)

    def grammar(self, tools: Sequence[ToolDefinition]) -> str | None:
        return self._inner.grammar(tools)
