"""The markers of a model around what is said: whose turn it is, where it ends."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gametape.engines.chat_formats.protocol import Tokenizer


@dataclass(frozen=True)
class Placeholder:
    """Where text goes; `quoted` if it stands inside a JSON string there."""

    name: str
    quoted: bool = False

    def escape(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=False)[1:-1] if self.quoted else text


FramePiece = tuple[int, ...] | Placeholder
"""Ids as they are, or a place."""


@dataclass(frozen=True)
class TurnFrame:
    """`opening` has places for `system` and `user`, `told` for `user`; both end where the model's turn begins.

    `end` closes a turn of the model. Its first id is one of `stop_ids`, where the model has such an id.
    """

    opening: tuple[FramePiece, ...]
    user_message: tuple[FramePiece, ...]
    end: tuple[int, ...]
    stop_ids: tuple[int, ...]

    @property
    def header(self) -> tuple[int, ...]:
        """See `Dialect.header`: what follows the end of a message, where messages end as turns of the model do."""
        last = self.user_message[-1]
        ids = () if isinstance(last, Placeholder) else last
        return ids[len(self.end) :] if ids[: len(self.end)] == self.end else ()

    def close_turn(self, completion_ids: Sequence[int]) -> list[int]:
        """See `Dialect.closing`. A turn that ended with any of the stop ids has ended itself."""
        ended = bool(completion_ids) and completion_ids[-1] in self.stop_ids
        return list(self.end[1:] if ended else self.end)


def encode_pieces(pieces: Sequence[FramePiece], texts: Mapping[str, str], tokenizer: Tokenizer) -> list[int]:
    """The ids of pieces with text put into its places."""
    ids: list[int] = []
    for piece in pieces:
        ids += tokenizer.encode(piece.escape(texts[piece.name])) if isinstance(piece, Placeholder) else piece
    return ids
