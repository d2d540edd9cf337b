"""Attributes of modules and classes that the test process sets, and how they were before.

What a patch replaced is put back when the test process deletes the attribute or sets the value that it saw there
before: it cannot see the descriptor of a method, so it could not put back a static method as one.
"""

from __future__ import annotations

import types
from typing import Any

_ABSENT = object()


class AttributePatches:
    """The patches of one test process."""

    def __init__(self) -> None:
        self._before: dict[tuple[int, str], tuple[Any, Any, Any]] = {}

    def set(self, target: Any, name: str, value: Any) -> None:
        if not isinstance(target, (type, types.ModuleType)):
            setattr(target, name, value)
            return
        shown = self._before.setdefault((id(target), name), (target, *_look(target, name)))[2]
        if shown is not _ABSENT and (value is shown or (isinstance(value, types.MethodType) and value == shown)):
            self._restore(target, name)
        else:
            setattr(target, name, value)

    def delete(self, target: Any, name: str) -> None:
        if not isinstance(target, (type, types.ModuleType)):
            delattr(target, name)
        elif (id(target), name) in self._before:
            self._restore(target, name)
        else:
            before = _look(target, name)
            delattr(target, name)
            self._before[id(target), name] = target, *before

    def undo(self) -> None:
        """Undo what is left of all patches."""
        for target, name in [(entry[0], key[1]) for key, entry in self._before.items()]:
            self._restore(target, name)

    def _restore(self, target: Any, name: str) -> None:
        _, raw, _ = self._before.pop((id(target), name))
        if raw is not _ABSENT:
            setattr(target, name, raw)
        elif name in vars(target):
            delattr(target, name)


def _look(target: Any, name: str) -> tuple[Any, Any]:
    """What the target itself holds under a name, and what a look at it shows."""
    return vars(target).get(name, _ABSENT), getattr(target, name, _ABSENT)
