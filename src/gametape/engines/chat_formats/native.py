"""The chat format of models that were trained on a tool format of their own, as their chat template shows it."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gametape.engines.chat_formats.chat_template import (
    ChatTemplate,
    TemplateMessage,
    TemplateRefusal,
    placeholder_message,
    placeholder_text,
    split_placeholders,
    tokenize_rendered,
)
from gametape.engines.chat_formats.protocol import ParsedTurn
from gametape.engines.chat_formats.tool_call_grammar import tagged_grammar
from gametape.engines.chat_formats.tool_calls import MalformedCall, parse_call
from gametape.engines.chat_formats.turn_frame import FramedChatFormat, FramePiece, Placeholder, TurnFrame, encode_pieces
from gametape.engines.conversation import Call, ToolDefinition, ToolResponse
from gametape.engines.tokenizers.trained import TrainedTokenizer

_PROBE: ToolDefinition = {
    "name": "gtape_tool",
    "description": "gtape_description",
    "parameters": {"type": "object", "properties": {"gtape_key": {"type": "string"}}, "required": ["gtape_key"]},
}
_OPENING = [placeholder_message("system", "system"), placeholder_message("user", "user")]
_CALLING: TemplateMessage = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": "gtape0000", "type": "function", "function": {"name": "gtape_tool", "arguments": {"gtape_key": "v"}}}
    ],
}


@dataclass(frozen=True)
class ToolCallFormat:
    """How a model writes calls: between two tags or, where the tags are empty, as a whole turn."""

    open_tag: str
    close_tag: str
    arguments_field: str


HERMES = ToolCallFormat("<tool_call>\n", "\n</tool_call>", "arguments")
LLAMA = ToolCallFormat("", "", "parameters")


def detect_tool_call_format(template: ChatTemplate) -> ToolCallFormat | None:
    """The tool format that a template shows; None if it shows none, or an unknown one."""
    try:
        opening = template.render(_OPENING, [_PROBE])
        rendered = template.render([*_OPENING, _CALLING], [_PROBE], prompt=False)
        for responses in (1, 2):
            _after_calls(template, responses)
    except TemplateRefusal:
        return None
    if "gtape_description" not in opening or not {"system", "user"} <= _placeholder_names(opening):
        return None
    turn = rendered[rendered.rfind(placeholder_text("user")) :]
    for form, shape in ((HERMES, r"<tool_call>\s*(\{.*\})\s*</tool_call>"), (LLAMA, r"(\{.*\})")):
        for document in re.findall(shape, turn, re.DOTALL):
            try:
                if parse_call(document, form.arguments_field) == Call("gtape_tool", {"gtape_key": "v"}):
                    return form
            except MalformedCall:
                continue
    return None


def _placeholder_names(rendered: str) -> set[str]:
    return {part.name for part in split_placeholders(rendered) if isinstance(part, Placeholder)}


def _after_calls(template: ChatTemplate, responses: int) -> str:
    """The text after a turn with a call, with this many tool responses."""
    before = [*_OPENING, _CALLING]
    results = [
        placeholder_message("tool", f"answer{n}") | {"name": placeholder_text(f"name{n}"), "tool_call_id": "gtape0000"}
        for n in range(responses)
    ]
    called = template.render(before, [_PROBE], prompt=False)
    answered = template.render([*before, *results], [_PROBE])
    shown = _placeholder_names(answered)
    if not answered.startswith(called) or any(f"answer{n}" not in shown for n in range(responses)):
        raise TemplateRefusal("the chat template has no place for tool results")
    return answered[len(called) :]


class NativeChatFormat(FramedChatFormat[TrainedTokenizer]):
    """Tools, calls and results are written as the model's chat template writes them."""

    def __init__(
        self, tokenizer: TrainedTokenizer, frame: TurnFrame, template: ChatTemplate, form: ToolCallFormat
    ) -> None:
        super().__init__(tokenizer, frame)
        self.form = form
        self._template = template
        self._opening: Callable[[str], tuple[FramePiece, ...]] = lru_cache(maxsize=16)(self._opening_pieces)
        self._responses: Callable[[int], tuple[FramePiece, ...]] = lru_cache(maxsize=16)(self._response_pieces)
        self._marker_texts = {f"marker{i}": text for text, i in tokenizer.special_tokens.items() if text}
        tags = (form.open_tag.strip(), form.close_tag.strip())
        self._tags = {tokenizer.special_tokens[tag]: tag for tag in tags if tag in tokenizer.special_tokens}

    def encode_opening(self, system: str, tools: Sequence[ToolDefinition], user: str) -> list[int]:
        pieces = self._opening(json.dumps(tools, ensure_ascii=False)) if tools else self.frame.opening
        return encode_pieces(pieces, self._marker_texts | {"system": system, "user": user}, self.tokenizer)

    def encode_tool_responses(self, responses: Sequence[ToolResponse]) -> list[int]:
        texts = {f"answer{n}": response.content for n, response in enumerate(responses)}
        texts |= {f"name{n}": response.call.name for n, response in enumerate(responses)}
        return encode_pieces(self._responses(len(responses)), texts, self.tokenizer)

    def parse(self, completion_ids: Sequence[int]) -> ParsedTurn:
        turn = self._text(completion_ids)
        try:
            return _parse_tagged(turn) if self.form is HERMES else _parse_whole(turn)
        except MalformedCall as error:
            return ParsedTurn(turn.strip(), problem=f"Your tool call cannot be read: {error}.")

    def encode_call(self, call: Call) -> list[int]:
        document = json.dumps({"name": call.name, self.form.arguments_field: call.arguments}, ensure_ascii=False)
        encode_tag = self.tokenizer.encode_with_special
        ids = [*encode_tag(self.form.open_tag), *self.tokenizer.encode(document), *encode_tag(self.form.close_tag)]
        return [*ids, self.frame.end[0]]

    def grammar(self, tools: Sequence[ToolDefinition]) -> str | None:
        names, form = [tool["name"] for tool in tools], self.form
        return tagged_grammar(names, form.open_tag, form.close_tag, form.arguments_field) if names else None

    def _text(self, ids: Sequence[int]) -> str:
        """The turn's text with the tags of calls in it, even if they are special tokens."""
        runs: list[list[int]] = [[]]
        texts: list[str] = []
        for i in ids:
            if i in self._tags:
                texts += [self.tokenizer.decode(runs[-1]), self._tags[i]]
                runs.append([])
            else:
                runs[-1].append(i)
        return "".join([*texts, self.tokenizer.decode(runs[-1])])

    def _opening_pieces(self, tools: str) -> tuple[FramePiece, ...]:
        """Descriptions of tools are text too: a special token in one becomes a placeholder, to be replaced by text."""
        for name, text in sorted(self._marker_texts.items(), key=lambda item: len(item[1]), reverse=True):
            tools = tools.replace(_quoted(text), _quoted(placeholder_text(name)))
        return tokenize_rendered(self._template.render(_OPENING, json.loads(tools)), self.tokenizer)

    def _response_pieces(self, responses: int) -> tuple[FramePiece, ...]:
        return tokenize_rendered(_after_calls(self._template, responses), self.tokenizer)


def _parse_tagged(turn: str) -> ParsedTurn:
    """Calls between tags; what stands before `</think>` is only text."""
    reasoning, closed, answer = turn.rpartition("</think>")
    text, *documents = answer.split("<tool_call>")
    calls: list[Call] = []
    for document in documents:
        call, end, after = document.partition("</tool_call>")
        if not end:
            raise MalformedCall("it does not end; close it with </tool_call>")
        calls.append(parse_call(call))
        text += after
    return ParsedTurn((reasoning + closed + text).strip(), tuple(calls))


def _parse_whole(turn: str) -> ParsedTurn:
    """A turn that is an object is a call; any other is text."""
    if not turn.lstrip().startswith("{"):
        return ParsedTurn(turn.strip())
    return ParsedTurn("", (parse_call(turn, LLAMA.arguments_field),))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
