"""What a chat template puts around messages, as a frame."""

from collections.abc import Iterable
from typing import Any

from gametape.core.errors import BadInput
from gametape.engines.dialects.frame import Frame, Piece, Place
from gametape.engines.dialects.template import ChatTemplate, TemplateRefuses, holder, split
from gametape.engines.tokenizing.trained import TrainedTokenizer

Message = dict[str, Any]


def says(role: str, name: str) -> Message:
    """A message with a place holder in it."""
    return {"role": role, "content": holder(name)}


def pieces_of(rendered: str, tokenizer: TrainedTokenizer) -> tuple[Piece, ...]:
    """A rendering as ids and places."""
    return tuple(part if isinstance(part, Place) else tuple(tokenizer.encode_marked(part)) for part in split(rendered))


def frame_of(template: ChatTemplate, tokenizer: TrainedTokenizer, stop_ids: Iterable[int]) -> Frame:
    """The frame of a template; `stop_ids` are those that the model's files name."""
    rendered, first = _opening(template)
    end, told = after_a_turn(template, first, [says("user", "user")])
    if Place("user") not in split(rendered) or Place("user") not in split(told):
        raise BadInput("the chat template leaves out messages of the user")
    closing = tuple(tokenizer.encode_marked(end))
    stops = {*stop_ids, *(i for i in closing[:1] if i in tokenizer.special_ids)}
    if not stops:
        raise BadInput("neither the chat template nor the model's files name a token that ends a turn")
    if not closing or closing[0] not in stops:
        closing = (min(stops), *closing)
    return Frame(pieces_of(rendered, tokenizer), pieces_of(told, tokenizer), closing, tuple(sorted(stops)))


def after_a_turn(template: ChatTemplate, first: list[Message], then: list[Message]) -> tuple[str, str]:
    """What ends a turn of the model, and what stands from there on with these messages after it."""
    turn = [*first, says("assistant", "turn")]
    alone = template.render(turn, prompt=False).partition(holder("turn"))
    more = template.render([*turn, *then]).partition(holder("turn"))
    if not alone[1] or not more[1]:
        raise TemplateRefuses("the chat template leaves out turns of the model")
    end = _common(alone[2], more[2])
    return end, more[2][len(end) :]


def _opening(template: ChatTemplate) -> tuple[str, list[Message]]:
    """The beginning of a conversation. Where there is no place for a system text, it goes before the user's."""
    messages = [says("system", "system"), says("user", "user")]
    try:
        rendered = template.render(messages)
        if holder("system") in rendered:
            return rendered, messages
    except TemplateRefuses:
        pass
    messages = [{"role": "user", "content": f"{holder('system')}\n\n{holder('user')}"}]
    return template.render(messages), messages


def _common(one: str, other: str) -> str:
    """What both begin with."""
    differ = (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return one[: next(differ, min(len(one), len(other)))]
