"""A model's chat template, split into its own markers as ids and placeholders for text.

The template renders placeholders only. What it writes around them is tokenised with special tokens, the text that
replaces them is tokenised without: so no text can end a message, and nothing depends on what was sampled before,
whatever the template does to earlier turns.
"""

import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from gametape.core.errors import BadInput
from gametape.engines.chat_formats.turn_frame import FramePiece, Placeholder, TurnFrame
from gametape.engines.tokenizers.text import common_prefix_length
from gametape.engines.tokenizers.trained import TrainedTokenizer

_SECRET = secrets.token_hex(8)
"""Random, so that no description of a tool can contain a placeholder."""
_PLACEHOLDER = re.compile(rf"{_SECRET}<(\w+)(\n|\\n)>{_SECRET}")


class TemplateRefusal(BadInput):
    """The template does not accept such a conversation."""


def placeholder_text(name: str) -> str:
    """What the template sees in place of text. The line break in it shows whether the template quotes it as JSON."""
    return f"{_SECRET}<{name}\n>{_SECRET}"


def split_placeholders(rendered: str) -> list[str | Placeholder]:
    """The template's own text and the placeholders between it."""
    parts: list[str | Placeholder] = []
    at = 0
    for match in _PLACEHOLDER.finditer(rendered):
        parts += [rendered[at : match.start()], Placeholder(match[1], quoted=match[2] != "\n")]
        at = match.end()
    return [part for part in [*parts, rendered[at:]] if part != ""]


class ChatTemplate:
    """A jinja template as model directories hold it, with the special tokens that it may refer to."""

    def __init__(self, source: str, variables: Mapping[str, Any]) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
        )
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _raise_template_error
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise BadInput(f"the chat template cannot be read: {_one_line(error)}") from None
        self._variables = dict(variables)

    def render(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] = (), prompt: bool = True
    ) -> str:
        """The conversation as text, with `prompt` up to where the model's next turn begins."""
        variables = self._variables | {"messages": list(messages), "add_generation_prompt": prompt}
        variables["tools"] = [{"type": "function", "function": tool} for tool in tools] or None
        try:
            return self._template.render(variables)
        except (TemplateError, TypeError, ValueError, KeyError, AttributeError) as error:
            raise TemplateRefusal(f"the chat template refuses: {_one_line(error)}") from None


class _Generation(Extension):
    """`{% generation %}` marks the model's turns in some templates; it is accepted and ignored."""

    tags = {"generation"}  # noqa: RUF012 - jinja's own attribute

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, **more: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **more)


def _raise_template_error(message: str) -> None:
    raise TemplateError(message)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


TemplateMessage = dict[str, Any]


def placeholder_message(role: str, name: str) -> TemplateMessage:
    """A message whose content is a placeholder."""
    return {"role": role, "content": placeholder_text(name)}


def tokenize_rendered(rendered: str, tokenizer: TrainedTokenizer) -> tuple[FramePiece, ...]:
    """A rendered conversation as ids and placeholders."""
    return tuple(
        part if isinstance(part, Placeholder) else tuple(tokenizer.encode_with_special(part))
        for part in split_placeholders(rendered)
    )


def read_turn_frame(template: ChatTemplate, tokenizer: TrainedTokenizer, stop_ids: Iterable[int]) -> TurnFrame:
    """The turn frame of a template; `stop_ids` are those that the model's files name."""
    rendered, first = _opening(template)
    end, following = text_after_turn(template, first, [placeholder_message("user", "user")])
    if any(Placeholder("user") not in split_placeholders(text) for text in (rendered, following)):
        raise BadInput("the chat template leaves out messages of the user")
    closing = tuple(tokenizer.encode_with_special(end))
    stops = {*stop_ids, *(i for i in closing[:1] if i in tokenizer.special_ids)}
    if not stops:
        raise BadInput("neither the chat template nor the model's files name a token that ends a turn")
    if not closing or closing[0] not in stops:
        closing = (min(stops), *closing)
    return TurnFrame(
        tokenize_rendered(rendered, tokenizer), tokenize_rendered(following, tokenizer), closing, tuple(sorted(stops))
    )


def text_after_turn(
    template: ChatTemplate, first: list[TemplateMessage], then: list[TemplateMessage]
) -> tuple[str, str]:
    """The text that ends a turn of the model, and the text of these messages after it."""
    turn = [*first, placeholder_message("assistant", "turn")]
    alone = template.render(turn, prompt=False).partition(placeholder_text("turn"))
    more = template.render([*turn, *then]).partition(placeholder_text("turn"))
    if not alone[1] or not more[1]:
        raise TemplateRefusal("the chat template leaves out turns of the model")
    end = alone[2][: common_prefix_length(alone[2], more[2])]
    return end, more[2][len(end) :]


def _opening(template: ChatTemplate) -> tuple[str, list[TemplateMessage]]:
    """The beginning of a conversation. Where the template has no system message, its text goes before the user's."""
    messages = [placeholder_message("system", "system"), placeholder_message("user", "user")]
    try:
        rendered = template.render(messages)
        if placeholder_text("system") in rendered:
            return rendered, messages
    except TemplateRefusal:
        pass
    messages = [{"role": "user", "content": f"{placeholder_text('system')}\n\n{placeholder_text('user')}"}]
    return template.render(messages), messages
