"""A model's chat template, taken apart: its own markers as ids, and the places where text goes.

The template is only ever given place holders. What it makes around them is tokenised with special tokens, what is put
into the places is tokenised without: so no text can end a message, and nothing depends on what was sampled before,
whatever the template does to the past of a conversation.
"""

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from gametape.core.errors import BadInput
from gametape.engines.dialects.frame import Place

_UNGUESSED = secrets.token_hex(8)
"""So that no description of a tool can hold a place holder."""
_HOLDER = re.compile(rf"{_UNGUESSED}<(\w+)(\n|\\n)>{_UNGUESSED}")


class TemplateRefuses(BadInput):
    """The template does not take such a conversation."""


def holder(name: str) -> str:
    """What the template gets to see in place of text. The line break in it shows whether it came to be quoted."""
    return f"{_UNGUESSED}<{name}\n>{_UNGUESSED}"


def split(rendered: str) -> list[str | Place]:
    """The template's own words and the places between them."""
    parts: list[str | Place] = []
    at = 0
    for found in _HOLDER.finditer(rendered):
        parts += [rendered[at : found.start()], Place(found[1], quoted=found[2] != "\n")]
        at = found.end()
    return [part for part in [*parts, rendered[at:]] if part != ""]


class ChatTemplate:
    """A jinja template in the form that model directories hold, with the names of special tokens it may use."""

    def __init__(self, source: str, variables: Mapping[str, Any]) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
        )
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _refuse
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise BadInput(f"the chat template cannot be read: {_line(error)}") from None
        self._variables = dict(variables)

    def render(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] = (), prompt: bool = True
    ) -> str:
        """The conversation as text, with `prompt` up to where the model's next turn begins."""
        given = self._variables | {"messages": list(messages), "add_generation_prompt": prompt}
        given["tools"] = [{"type": "function", "function": tool} for tool in tools] or None
        try:
            return self._template.render(given)
        except (TemplateError, TypeError, ValueError, KeyError, AttributeError) as error:
            raise TemplateRefuses(f"the chat template refuses: {_line(error)}") from None


class _Generation(Extension):
    """`{% generation %}` marks, in some templates, what the model said. Here it is known otherwise."""

    tags = {"generation"}  # noqa: RUF012 - jinja's own attribute

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, **more: Any) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **more)


def _refuse(message: str) -> None:
    raise TemplateError(message)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
