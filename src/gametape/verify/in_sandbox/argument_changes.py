"""Finds the containers that a call changed in place."""

from __future__ import annotations

from typing import Any

from .wire_bases import data_base, elements, same_elements


def _data(container: Any) -> Any:
    """The plain data of a container, which may stand for one of the test's own classes."""
    base = data_base(type(container))
    return base.read(container) if base is not None else container


def _elements(container: Any) -> list[Any]:
    return elements(_data(container))


class ArgumentChanges:
    """Finds the arguments that a call changed in place.

    It keeps a shallow copy of every mutable container of a request and compares by identity after the call; a container
    within a container has its own copy.
    """

    def __init__(self, containers: list[Any]) -> None:
        self._containers = containers
        self._before = [_elements(container) for container in containers]

    def position(self, value: Any) -> int | None:
        """The position of the container, if it is one of them."""
        for position, container in enumerate(self._containers):
            if container is value:
                return position
        return None

    def updates(self) -> tuple[tuple[int, Any], ...]:
        """The changed containers, each with its position."""
        return tuple(
            (position, _data(container))
            for position, (container, before) in enumerate(zip(self._containers, self._before, strict=True))
            if not same_elements(before, _elements(container))
        )
