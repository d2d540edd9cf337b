"""The markers of a model around what is said: whose turn it is, where it ends."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gametape.engines.dialect import Tokenizer


@dataclass(frozen=True)
class Place:
    """Where text goes; `quoted` if it stands inside a JSON string there."""

    name: str
    quoted: bool = False

    def written(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=False)[1:-1] if self.quoted else text


Piece = tuple[int, ...] | Place
"""Ids as they are, or a place."""


@dataclass(frozen=True)
class Frame:
    """`opening` has places for `system` and `user`, `told` for `user`; both end where the model's turn begins.

    `end` closes a turn of the model. Its first id is one of `stop_ids`, where the model has such an id.
    """

    opening: tuple[Piece, ...]
    told: tuple[Piece, ...]
    end: tuple[int, ...]
    stop_ids: tuple[int, ...]

    @property
    def header(self) -> tuple[int, ...]:
        """See `Dialect.header`: what follows the end of a message, where messages end as turns of the model do."""
        last = self.told[-1]
        ids = () if isinstance(last, Place) else last
        return ids[len(self.end) :] if ids[: len(self.end)] == self.end else ()

    def closing(self, completion_ids: Sequence[int]) -> list[int]:
        """See `Dialect.closing`. A turn that ended with any of the stop ids has ended itself."""
        ended = bool(completion_ids) and completion_ids[-1] in self.stop_ids
        return list(self.end[1:] if ended else self.end)


def filled(pieces: Sequence[Piece], texts: Mapping[str, str], tokenizer: Tokenizer) -> list[int]:
    """The ids of pieces with text put into its places."""
    ids: list[int] = []
    for piece in pieces:
        ids += tokenizer.encode(piece.written(texts[piece.name])) if isinstance(piece, Place) else piece
    return ids
