"""An attribute or item being set, by whatever means."""

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class Write:
    """An attribute or item of something being set or removed: `base` is what it belongs to."""

    base: str
    name: str | None
    """None where the text does not say which."""
    value: ast.expr | None
    node: ast.AST
    item: bool = False
    """Whether it is an item of a container and not an attribute."""


def is_monkeypatch(func: ast.expr) -> bool:
    """`monkeypatch.setattr` where `monkeypatch` is an argument, and so stands for nothing known."""
    return isinstance(func, ast.Attribute) and func.attr == "setattr" and getattr(func.value, "id", "") == "monkeypatch"
