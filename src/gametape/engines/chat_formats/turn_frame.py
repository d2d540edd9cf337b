"""The marker ids of a model around messages and turns, with placeholders for text."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from gametape.engines.chat_formats.protocol import Tokenizer


@dataclass(frozen=True)
class Placeholder:
    """A place for text; `quoted` if it is inside a JSON string."""

    name: str
    quoted: bool = False

    def escape(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=False)[1:-1] if self.quoted else text


FramePiece = tuple[int, ...] | Placeholder
"""Marker ids, or a placeholder."""


@dataclass(frozen=True)
class TurnFrame:
    """`opening` has placeholders `system` and `user`, `user_message` has `user`; a turn of the model begins after both.

    `end` closes a turn of the model. Its first id is one of `stop_ids`, where the model has such an id.
    """

    opening: tuple[FramePiece, ...]
    user_message: tuple[FramePiece, ...]
    end: tuple[int, ...]
    stop_ids: tuple[int, ...]

    @property
    def header(self) -> tuple[int, ...]:
        """See `ChatFormat.header`: what follows the end of a message, where messages end as turns of the model do."""
        last = self.user_message[-1]
        ids = () if isinstance(last, Placeholder) else last
        return ids[len(self.end) :] if ids[: len(self.end)] == self.end else ()

    def close_turn(self, completion_ids: Sequence[int]) -> list[int]:
        """See `ChatFormat.close_turn`. A turn that ended with any of the stop ids has ended itself."""
        ended = bool(completion_ids) and completion_ids[-1] in self.stop_ids
        return list(self.end[1:] if ended else self.end)


def encode_pieces(pieces: Sequence[FramePiece], texts: Mapping[str, str], tokenizer: Tokenizer) -> list[int]:
    """The ids of the pieces with these texts in place of the placeholders."""
    ids: list[int] = []
    for piece in pieces:
        ids += tokenizer.encode(piece.escape(texts[piece.name])) if isinstance(piece, Placeholder) else piece
    return ids


T = TypeVar("T", bound=Tokenizer)


class FramedChatFormat(Generic[T]):
    """To be derived from: the part of a `ChatFormat` that its turn frame decides."""

    def __init__(self, tokenizer: T, frame: TurnFrame) -> None:
        self.tokenizer, self.frame = tokenizer, frame
        self.stop_ids: Sequence[int] = frame.stop_ids

    @property
    def header(self) -> Sequence[int]:
        return self.frame.header

    def encode_user(self, text: str) -> list[int]:
        return encode_pieces(self.frame.user_message, {"user": text}, self.tokenizer)

    def close_turn(self, completion_ids: Sequence[int]) -> list[int]:
        return self.frame.close_turn(completion_ids)
