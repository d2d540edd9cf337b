"""Handles that carry data, and the containers among them that the test process has a copy of.

The copy has to follow the real object. So each container that was sent is compared, after every request, with what was
sent last, by the identity of its elements, and sent again if it changed.
"""

from __future__ import annotations

from typing import Any

from . import wire_protocol as words
from .wire_bases import DataBase, data_base, elements, same_elements
from .worker_objects import ObjectTable


class MirrorTable:
    """The containers that the test process has copies of."""

    def __init__(self, objects: ObjectTable) -> None:
        self._objects = objects
        self._sent: dict[int, tuple[Any, DataBase, list[Any]]] = {}
        self._in_frame: set[int] = set()

    def begin_frame(self) -> None:
        """A new frame: a container's data are sent once in each, so that one that contains itself can cross."""
        self._in_frame.clear()

    def handle(self, value: Any) -> tuple[int, Any]:
        """The stand-in of an object of a class of this side."""
        kind = type(value)
        number = self._objects.number(value)
        reference = number, self._objects.number(kind)
        base = data_base(kind)
        if base is None:
            return words.HANDLE, reference
        data = base.read(value)
        if base.replace is not None:
            if id(value) in self._in_frame:
                return words.HANDLE, reference
            self._in_frame.add(id(value))
            if not self._objects.is_trial:
                self._sent[number] = value, base, elements(data)
        return words.HANDLE, (*reference, data)

    def changed(self) -> tuple[tuple[Any], ...]:
        """The containers that have changed since they were sent, in the order in which they became known."""
        changed = []
        for number, (value, base, before) in list(self._sent.items()):
            if number not in self._objects:
                del self._sent[number]
                continue
            if not same_elements(before, elements(base.read(value))):
                changed.append((value,))
        return tuple(changed)
