"""The chat format of tiny policies: a turn is a tool's name and its arguments in order, a word each.

Such a policy knows one kind of task only. The system text and the tools are always the same, so they are left out and
a long episode stays short.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby

from gametape.core.errors import BadInput
from gametape.engines.chat_formats.protocol import ParsedTurn
from gametape.engines.conversation import Call, ToolDefinition, ToolResponse
from gametape.engines.tokenizers.trained import TrainedTokenizer
from gametape.engines.tokenizers.words import ACT, END, TOOL, USER


class TerseChatFormat:
    """`signatures` names the arguments of each tool in their order. A run of unknown words becomes one token."""

    def __init__(self, tokenizer: TrainedTokenizer, signatures: Mapping[str, Sequence[str]]) -> None:
        self.tokenizer, self.signatures = tokenizer, signatures
        markers = tokenizer.special_tokens
        if missing := [marker for marker in (USER, TOOL, ACT, END) if marker not in markers]:
            raise BadInput(f"the tokenizer of a terse policy has no {missing[0]}")
        self._user, self._tool, self._act, self._end = (markers[name] for name in (USER, TOOL, ACT, END))
        self.stop_ids: Sequence[int] = (self._end,)
        self.header: Sequence[int] = (self._act,)

    def encode_opening(self, system: str, tools: Sequence[ToolDefinition], user: str) -> list[int]:  # noqa: ARG002
        return self.encode_user(user)

    def encode_user(self, text: str) -> list[int]:
        return [self._user, *self._ids(text), self._act]

    def encode_tool_responses(self, responses: Sequence[ToolResponse]) -> list[int]:
        ids = [i for response in responses for i in (self._tool, *self._ids(response.content))]
        return [*ids, self._act]

    def close_turn(self, completion_ids: Sequence[int]) -> list[int]:
        return [] if completion_ids and completion_ids[-1] == self._end else [self._end]

    def parse(self, completion_ids: Sequence[int]) -> ParsedTurn:
        text = self.tokenizer.decode(completion_ids)
        name, *values = text.split() or ("",)
        names = self.signatures.get(name, ())
        if not completion_ids or completion_ids[-1] != self._end:
            problem = "error : no end"
        elif name not in self.signatures:
            problem = "error : no such tool"
        elif len(values) > len(names) or len(values) + 2 != len(completion_ids):
            problem = "error : too many words"
        else:
            return ParsedTurn("", (Call(name, dict(zip(names, values, strict=False))),))
        return ParsedTurn(text, problem=problem)

    def grammar(self, tools: Sequence[ToolDefinition]) -> str | None:  # noqa: ARG002
        return None

    def encode_call(self, call: Call) -> list[int]:
        values = [str(call.arguments[name]) for name in self.signatures[call.name] if name in call.arguments]
        return [*self.tokenizer.encode(" ".join((call.name, *values))), self._end]

    def _ids(self, text: str) -> list[int]:
        ids = self.tokenizer.encode(text)
        return [i for i, run in groupby(ids) for _ in (run if i else (0,))]
