"""Containers from their elements, which a hostile side may have chosen."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import Any

MOST_COLLISIONS = 100
"""Keys of one set or dict that may share another key's hash."""


class WireError(Exception):
    """The other side sent something that no honest peer sends, or has closed the connection."""


class Unsendable(TypeError):
    """The value is not plain data and has no stand-in that can cross."""


@dataclass(frozen=True)
class Unbuilt:
    """A value as its parts: while it is written, or where a stand-in takes the place of a part when it is read."""

    tag: int
    kind: int
    items: tuple[Any, ...]

    def __hash__(self) -> int:
        return hash((self.tag, self.kind, len(self.items)))


def spread(keys: list[Any]) -> list[Any]:
    """The keys, if all are different and nearly all hashes are."""
    if len(keys) > MOST_COLLISIONS and len(keys) - len(set(map(hash, keys))) > MOST_COLLISIONS:
        raise WireError("keys that were made to collide")
    if len(set(keys)) != len(keys):
        raise WireError("the same key twice")
    return keys


def build_deque(_: int, items: list[Any]) -> collections.deque[Any]:
    size, contents = items
    if type(contents) is not list or not (size is None or type(size) is int):
        raise WireError("a deque of something else")
    return collections.deque(contents, size)


def build_dict(items: list[Any]) -> dict[Any, Any]:
    return dict(zip(spread(items[::2]), items[1::2], strict=True))


def build_counter(items: list[Any]) -> collections.Counter[Any]:
    counter: collections.Counter[Any] = collections.Counter()
    dict.update(counter, build_dict(items))
    return counter


def build_defaults(_: int, items: list[Any]) -> collections.defaultdict[Any, Any]:
    factory = items[0]
    if not (factory is None or callable(factory)):
        raise WireError("a default that cannot be made")
    return collections.defaultdict(factory, build_dict(items[1:]))


def build_items(_: int, items: list[Any]) -> Any:
    if any(type(item) is not tuple or len(item) != 2 for item in items):
        raise WireError("items that are not pairs")
    spread([key for key, _ in items])
    return dict(items).items()
