"""Canonical dotted names: modules known under a second name or reached through another one; and attribute writes."""

import ast
import sys
from dataclasses import dataclass

_SAME = {
    "posix": "os",
    "_operator": "operator",
    "_io": "io",
    "_socket": "socket",
    "_signal": "signal",
    "mock": "unittest.mock",
}
_REACHED_THROUGH = {
    "os", "sys", "time", "builtins", "gc", "inspect", "subprocess", "socket", "math", "signal", "threading", "types",
}  # fmt: skip


def canonical_name(name: str) -> str:
    """The dotted name by which rules know something."""
    parts = name.split(".")
    parts[0] = _SAME.get(parts[0], parts[0])
    while len(parts) > 2 and parts[0] in sys.stdlib_module_names and parts[1] in _REACHED_THROUGH:
        if parts[0] == "asyncio":
            break
        parts = parts[1:]
    return ".".join(parts)


@dataclass(frozen=True)
class AttributeWrite:
    """An attribute or item of something being set or removed: `base` is what it belongs to."""

    base: str
    name: str | None
    """None where the text does not say which."""
    value: ast.expr | None
    node: ast.AST
    is_item: bool = False
    """Whether it is an item of a container and not an attribute."""


def is_monkeypatch_call(func: ast.expr) -> bool:
    """`monkeypatch.setattr` where `monkeypatch` is an argument, and so stands for nothing known."""
    return isinstance(func, ast.Attribute) and func.attr == "setattr" and getattr(func.value, "id", "") == "monkeypatch"
