"""What a call did to the containers it was given."""

from __future__ import annotations

import operator
from typing import Any


def _contents(container: Any) -> Any:
    if type(container) is dict:
        return [part for pair in container.items() for part in pair]
    return bytes(container) if type(container) is bytearray else list(container)


def _same(before: Any, after: Any) -> bool:
    if type(before) is bytes:
        return bool(before == after)
    return len(before) == len(after) and all(map(operator.is_, before, after))


class Changes:
    """A shallow copy of every mutable container of a request, to be compared by identity after the call: an element
    that is itself a container has its own entry."""

    def __init__(self, containers: list[Any]) -> None:
        self._containers = containers
        self._before = [_contents(container) for container in containers]

    def position(self, value: Any) -> int | None:
        """Which of the containers this is, if it is one of them."""
        for position, container in enumerate(self._containers):
            if container is value:
                return position
        return None

    def updates(self) -> tuple[tuple[int, Any], ...]:
        """The containers that are not as they were, each with its position."""
        return tuple(
            (position, container)
            for position, (container, before) in enumerate(zip(self._containers, self._before, strict=True))
            if not _same(before, _contents(container))
        )
