"""Classes that a test derives from classes of the code: built here, with functions that call the test back."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

_BOUND: dict[str, Callable[[Any], Any]] = {
    "function": lambda function: function,
    "static": staticmethod,
    "class": classmethod,
    "property": lambda functions: property(*functions),
    "data": lambda value: value,
}


def build_subclass(name: str, bases: tuple[type, ...], members: dict[str, tuple[str, Any]]) -> type:
    """A class from the members that the test process described."""
    namespace = {key: _BOUND[bound](value) for key, (bound, value) in members.items()}
    namespace["__module__"] = "tests"
    return types.new_class(name, bases, {}, lambda body: body.update(namespace))
