"""Models that were trained on a tool format of their own, as their chat template shows it."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gametape.engines.conversation import Answer, Call, ToolDefinition
from gametape.engines.dialect import Parsed
from gametape.engines.dialects.calls import Malformed, read_call
from gametape.engines.dialects.frame import Frame, Piece, Place, filled
from gametape.engines.dialects.grammars import tagged_grammar
from gametape.engines.dialects.template import ChatTemplate, TemplateRefuses, holder, split
from gametape.engines.dialects.template_frame import Message, pieces_of, says
from gametape.engines.tokenizing.trained import TrainedTokenizer

_PROBE: ToolDefinition = {
    "name": "gtape_tool",
    "description": "gtape_description",
    "parameters": {"type": "object", "properties": {"gtape_key": {"type": "string"}}, "required": ["gtape_key"]},
}
_CALLING: Message = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"id": "gtape0000", "type": "function", "function": {"name": "gtape_tool", "arguments": {"gtape_key": "v"}}}
    ],
}


@dataclass(frozen=True)
class Format:
    """How a model writes calls: between two tags, or, where there are none, as a whole turn."""

    opened: str
    closed: str
    arguments: str


HERMES = Format("<tool_call>\n", "\n</tool_call>", "arguments")
LLAMA = Format("", "", "parameters")


def format_of(template: ChatTemplate) -> Format | None:
    """The tool format that a template shows; None if it shows none, or one that is not known here."""
    try:
        opening = template.render([says("system", "system"), says("user", "user")], [_PROBE])
        rendered = template.render([says("system", "system"), says("user", "user"), _CALLING], [_PROBE], prompt=False)
        for answers in (1, 2):
            _after_calls(template, answers)
    except TemplateRefuses:
        return None
    known = {place.name for place in split(opening) if isinstance(place, Place)}
    if "gtape_description" not in opening or not {"system", "user"} <= known:
        return None
    turn = rendered[rendered.rfind(holder("user")) :]
    for form, shape in ((HERMES, r"<tool_call>\s*(\{.*\})\s*</tool_call>"), (LLAMA, r"(\{.*\})")):
        for document in re.findall(shape, turn, re.DOTALL):
            try:
                if read_call(document, form.arguments) == Call("gtape_tool", {"gtape_key": "v"}):
                    return form
            except Malformed:
                continue
    return None


def _after_calls(template: ChatTemplate, answers: int) -> str:
    """What follows a turn with a call, from the end of that turn on."""
    before: list[Message] = [says("system", "system"), says("user", "user"), _CALLING]
    results = [
        says("tool", f"answer{n}") | {"name": holder(f"name{n}"), "tool_call_id": "gtape0000"} for n in range(answers)
    ]
    called = template.render(before, [_PROBE], prompt=False)
    answered = template.render([*before, *results], [_PROBE])
    shown = {part.name for part in split(answered) if isinstance(part, Place)}
    if not answered.startswith(called) or any(f"answer{n}" not in shown for n in range(answers)):
        raise TemplateRefuses("the chat template has no place for tool results")
    return answered[len(called) :]


class NativeDialect:
    """Tools, calls and results are written as the model's chat template writes them."""

    def __init__(self, tokenizer: TrainedTokenizer, frame: Frame, template: ChatTemplate, form: Format) -> None:
        self.tokenizer, self.frame, self.form = tokenizer, frame, form
        self._template = template
        self._opening: Callable[[str], tuple[Piece, ...]] = lru_cache(maxsize=16)(self._opening_pieces)
        self._answered: Callable[[int], tuple[Piece, ...]] = lru_cache(maxsize=16)(self._answered_pieces)
        self._marker_texts = {f"marker{i}": text for text, i in tokenizer.markers.items() if text}
        tags = (form.opened.strip(), form.closed.strip())
        self._tags = {tokenizer.markers[tag]: tag for tag in tags if tag in tokenizer.markers}

    @property
    def stop_ids(self) -> Sequence[int]:
        return self.frame.stop_ids

    @property
    def header(self) -> Sequence[int]:
        return self.frame.header

    def opening(self, system: str, tools: Sequence[ToolDefinition], user: str) -> list[int]:
        pieces = self._opening(json.dumps(tools, ensure_ascii=False)) if tools else self.frame.opening
        return filled(pieces, self._marker_texts | {"system": system, "user": user}, self.tokenizer)

    def told(self, text: str) -> list[int]:
        return filled(self.frame.told, {"user": text}, self.tokenizer)

    def answered(self, answers: Sequence[Answer]) -> list[int]:
        texts = {f"answer{n}": answer.content for n, answer in enumerate(answers)}
        texts |= {f"name{n}": answer.call.name for n, answer in enumerate(answers)}
        return filled(self._answered(len(answers)), texts, self.tokenizer)

    def closing(self, completion_ids: Sequence[int]) -> list[int]:
        return self.frame.closing(completion_ids)

    def parse(self, completion_ids: Sequence[int]) -> Parsed:
        turn = self._text(completion_ids)
        try:
            return _parse_tagged(turn) if self.form is HERMES else _parse_whole(turn)
        except Malformed as error:
            return Parsed(turn.strip(), problem=f"Your tool call cannot be read: {error}.")

    def written(self, call: Call) -> list[int]:
        document = json.dumps({"name": call.name, self.form.arguments: call.arguments}, ensure_ascii=False)
        marked = self.tokenizer.encode_marked
        ids = [*marked(self.form.opened), *self.tokenizer.encode(document), *marked(self.form.closed)]
        return [*ids, self.frame.end[0]]

    def grammar(self, tools: Sequence[ToolDefinition]) -> str | None:
        names = [tool["name"] for tool in tools]
        return tagged_grammar(names, self.form.opened, self.form.closed, self.form.arguments) if names else None

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

    def _opening_pieces(self, tools: str) -> tuple[Piece, ...]:
        """Descriptions of tools are text too: a marker in one of them becomes a place, to be filled as text."""
        for name, text in sorted(self._marker_texts.items(), key=lambda item: len(item[1]), reverse=True):
            tools = tools.replace(_quoted(text), _quoted(holder(name)))
        messages = [says("system", "system"), says("user", "user")]
        return pieces_of(self._template.render(messages, json.loads(tools)), self.tokenizer)

    def _answered_pieces(self, answers: int) -> tuple[Piece, ...]:
        return pieces_of(_after_calls(self._template, answers), self.tokenizer)


def _parse_tagged(turn: str) -> Parsed:
    """Calls between tags; what was thought before them is only text."""
    thought, closed, said = turn.rpartition("</think>")
    text, *calls = said.split("<tool_call>")
    found: list[Call] = []
    for call in calls:
        document, end, after = call.partition("</tool_call>")
        if not end:
            raise Malformed("it does not end; close it with </tool_call>")
        found.append(read_call(document))
        text += after
    return Parsed((thought + closed + text).strip(), tuple(found))


def _parse_whole(turn: str) -> Parsed:
    """A turn that is an object is a call; any other is text."""
    if not turn.lstrip().startswith("{"):
        return Parsed(turn.strip())
    return Parsed("", (read_call(turn, LLAMA.arguments),))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
