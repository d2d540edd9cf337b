"""The prompt of a turn as a part of its conversation: prompts share their ids instead of each having a copy.

Every turn reads all that came before it, so copies would take memory with the square of a conversation's length.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Self, overload

from pydantic import ConfigDict, PlainSerializer, PlainValidator, TypeAdapter

from gametape.core.base_model import TokenId

_TOKEN_IDS: TypeAdapter[list[int]] = TypeAdapter(list[TokenId], config=ConfigDict(strict=True))


class TokenPrefix(Sequence[int]):
    """The first ids of a list that only grows. It never changes, and is equal to a list of the same ids."""

    __slots__ = ("_ids", "_length")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, ids: Sequence[int] = ()) -> None:
        self._ids = list(ids)
        self._length = len(self._ids)

    def extended(self, more: Sequence[int]) -> Self:
        """These ids and `more` after them. What the list already has there is shared, and nothing before is copied,
        unless another conversation has gone on differently from here."""
        size = len(more)
        after = self._ids[self._length : self._length + size]
        known = len(after)
        if after != more[:known]:
            return type(self)([*self, *more])
        self._ids.extend(more[known:])
        longer = type(self)()
        longer._ids, longer._length = self._ids, self._length + size
        return longer

    def starts_with(self, other: Sequence[int]) -> bool:
        """Whether these ids begin with the others; known at once where both are parts of one list."""
        if isinstance(other, TokenPrefix) and other._ids is self._ids:
            return len(other) <= self._length
        return len(other) <= self._length and self._ids[: len(other)] == list(other)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            first, last, step = index.indices(self._length)
            return self._ids[first:last:step] if step > 0 else self._ids[: self._length][index]
        return self._ids[range(self._length)[index]]

    def __iter__(self) -> Iterator[int]:
        return iter(self[:])

    def __add__(self, more: Sequence[int]) -> list[int]:
        return [*self, *more]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TokenPrefix):
            return self._length == other._length and self.starts_with(other)
        return isinstance(other, list) and len(other) == self._length and self[:] == other

    def __repr__(self) -> str:
        return f"TokenPrefix({self[:]})"

    def __reduce__(self) -> tuple[type["TokenPrefix"], tuple[list[int]]]:
        """A pickle holds these ids and nothing that came after them."""
        return TokenPrefix, (self[:],)


def _validated(value: Any) -> Sequence[int]:
    return value if isinstance(value, TokenPrefix) else _TOKEN_IDS.validate_python(value)


PromptIds = Annotated[Sequence[int], PlainValidator(_validated), PlainSerializer(list, return_type=list[int])]
"""Token ids as a list, or as a part of their conversation, whose ids were checked when they came in."""


def as_prefix(ids: Sequence[int]) -> TokenPrefix:
    return ids if isinstance(ids, TokenPrefix) else TokenPrefix(ids)


def are_token_ids(value: Any) -> bool:
    """Whether this is a list of token ids."""
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 2**31 for item in value)
