"""Models that were trained on a tool format of their own, as their chat template shows it."""

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
from gametape.engines.chat_formats.turn_frame import FramePiece, Placeholder, TurnFrame, encode_pieces
from gametape.engines.conversation import Call, ToolDefinition, ToolResponse
from gametape.engines.tokenizers.trained import TrainedTokenizer

_PROBE: ToolDefinition = {
    "name": "gtape_tool",
    "description": "gtape_description",
    "parameters": {"type": "object", "properties": {"gtape_key": {"type": "string"}}, "required": ["gtape_key"]},
}
_CALLING: TemplateMessage = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": "gtape0000", "type": "function", "function": {"name": "gtape_tool", "arguments": {"gtape_key": "v"}}}
    ],
}


@dataclass(frozen=True)
class ToolCallFormat:
    """How a model writes calls: between two tags, or, where there are none, as a whole turn."""

    open_tag: str
    close_tag: str
    arguments_field: str


HERMES = ToolCallFormat("<tool_call>\n", "\n</tool_call>", "arguments")
LLAMA = ToolCallFormat("", "", "parameters")


def detect_tool_call_format(template: ChatTemplate) -> ToolCallFormat | None:
    """The tool format that a template shows; None if it shows none, or one that is not known here."""
    try:
        opening = template.render(
            [placeholder_message("system", "system"), placeholder_message("user", "user")], [_PROBE]
        )
        rendered = template.render(
            [placeholder_message("system", "system"), placeholder_message("user", "user"), _CALLING],
            [_PROBE],
            prompt=False,
        )
        for answers in (1, 2):
            _after_calls(template, answers)
    except TemplateRefusal:
        return None
    known = {place.name for place in split_placeholders(opening) if isinstance(place, Placeholder)}
    if "gtape_description" not in opening or not {"system", "user"} <= known:
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


def _after_calls(template: ChatTemplate, answers: int) -> str:
    """What follows a turn with a call, from the end of that turn on."""
    before: list[TemplateMessage] = [
        placeholder_message("system", "system"),
        placeholder_message("user", "user"),
        _CALLING,
    ]
    results = [
        placeholder_message("tool", f"answer{n}") | {"name": placeholder_text(f"name{n}"), "tool_call_id": "gtape0000"}
        for n in range(answers)
    ]
    called = template.render(before, [_PROBE], prompt=False)
    answered = template.render([*before, *results], [_PROBE])
    shown = {part.name for part in split_placeholders(answered) if isinstance(part, Placeholder)}
    if not answered.startswith(called) or any(f"answer{n}" not in shown for n in range(answers)):
        raise TemplateRefusal("the chat template has no place for tool results")
    return answered[len(called) :]


class NativeChatFormat:
    """Tools, calls and results are written as the model's chat template writes them."""

    def __init__(
        self, tokenizer: TrainedTokenizer, frame: TurnFrame, template: ChatTemplate, form: ToolCallFormat
    ) -> None:
        self.tokenizer, self.frame, self.form = tokenizer, frame, form
        self._template = template
        self._opening: Callable[[str], tuple[FramePiece, ...]] = lru_cache(maxsize=16)(self._opening_pieces)
        self._answered: Callable[[int], tuple[FramePiece, ...]] = lru_cache(maxsize=16)(self._answered_pieces)
        self._marker_texts = {f"marker{i}": text for text, i in tokenizer.special_tokens.items() if text}
        tags = (form.open_tag.strip(), form.close_tag.strip())
        self._tags = {tokenizer.special_tokens[tag]: tag for tag in tags if tag in tokenizer.special_tokens}

    @property
    def stop_ids(self) -> Sequence[int]:
        return self.frame.stop_ids

    @property
    def header(self) -> Sequence[int]:
        return self.frame.header

    def encode_opening(self, system: str, tools: Sequence[ToolDefinition], user: str) -> list[int]:
        pieces = self._opening(json.dumps(tools, ensure_ascii=False)) if tools else self.frame.opening
        return encode_pieces(pieces, self._marker_texts | {"system": system, "user": user}, self.tokenizer)

    def encode_user(self, text: str) -> list[int]:
        return encode_pieces(self.frame.user_message, {"user": text}, self.tokenizer)

    def encode_tool_responses(self, responses: Sequence[ToolResponse]) -> list[int]:
        texts = {f"answer{n}": answer.content for n, answer in enumerate(responses)}
        texts |= {f"name{n}": answer.call.name for n, answer in enumerate(responses)}
        return encode_pieces(self._answered(len(responses)), texts, self.tokenizer)

    def close_turn(self, completion_ids: Sequence[int]) -> list[int]:
        return self.frame.close_turn(completion_ids)

    def parse(self, completion_ids: Sequence[int]) -> ParsedTurn:
        turn = self._text(completion_ids)
        try:
            return _parse_tagged(turn) if self.form is HERMES else _parse_whole(turn)
        except MalformedCall as error:
            return ParsedTurn(turn.strip(), problem=f"Your tool call cannot be read: {error}.")

    def encode_call(self, call: Call) -> list[int]:
        document = json.dumps({"name": call.name, self.form.arguments_field: call.arguments}, ensure_ascii=False)
        marked = self.tokenizer.encode_with_special
        ids = [*marked(self.form.open_tag), *self.tokenizer.encode(document), *marked(self.form.close_tag)]
        return [*ids, self.frame.end[0]]

    def grammar(self, tools: Sequence[ToolDefinition]) -> str | None:
        names = [tool["name"] for tool in tools]
        return (
            tagged_grammar(names, self.form.open_tag, self.form.close_tag, self.form.arguments_field) if names else None
        )

    def _text(self, ids: Sequence[int]) -> str:
        """The turn's text with the tags of calls in it, even if the tokenizer holds them for special."""
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
        """Descriptions of tools are text too: a marker in one of them becomes a place, to be filled as text."""
        for name, text in sorted(self._marker_texts.items(), key=lambda item: len(item[1]), reverse=True):
            tools = tools.replace(_quoted(text), _quoted(placeholder_text(name)))
        messages = [placeholder_message("system", "system"), placeholder_message("user", "user")]
        return tokenize_rendered(self._template.render(messages, json.loads(tools)), self.tokenizer)

    def _answered_pieces(self, answers: int) -> tuple[FramePiece, ...]:
        return tokenize_rendered(_after_calls(self._template, answers), self.tokenizer)


def _parse_tagged(turn: str) -> ParsedTurn:
    """Calls between tags; what was thought before them is only text."""
    thought, closed, said = turn.rpartition("</think>")
    text, *calls = said.split("<tool_call>")
    found: list[Call] = []
    for call in calls:
        document, end, after = call.partition("</tool_call>")
        if not end:
            raise MalformedCall("it does not end; close it with </tool_call>")
        found.append(parse_call(document))
        text += after
    return ParsedTurn((thought + closed + text).strip(), tuple(found))


def _parse_whole(turn: str) -> ParsedTurn:
    """A turn that is an object is a call; any other is text."""
    if not turn.lstrip().startswith("{"):
        return ParsedTurn(turn.strip())
    return ParsedTurn("", (parse_call(turn, LLAMA.arguments_field),))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
