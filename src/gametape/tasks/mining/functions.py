"""The functions of a source file, as places: what can be deleted, and the lines that show that it ran."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gametape.tasks.mining.removal.python_source import (
    FunctionNode,
    body_after_docstring,
    inner_blocks,
    parse_module,
)


@dataclass(frozen=True, order=True)
class Function:
    """A function at module level or in a class. Functions inside functions are part of the outer one."""

    path: str
    line: int
    """Of its `def`."""
    qualname: str
    first_line: int
    """Where its decorators begin, or its `def`."""
    body_line: int
    """The first line of its body after a docstring."""
    last_line: int

    @property
    def name(self) -> str:
        return f"{self.path}::{self.qualname}"

    def __str__(self) -> str:
        return f"{self.name}:{self.line}"


def functions_in(path: str, source: str) -> list[Function]:
    """Every function with a body of its own to delete: it begins on a line where nothing of the signature stands, so
    that the line tells whether it ran, and it has a statement that does something."""
    try:
        module = parse_module(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [*_found(path, module.body, "")]


def _found(path: str, body: list[ast.stmt], prefix: str) -> Iterator[Function]:
    for node in body:
        if isinstance(node, FunctionNode):
            rest = body_after_docstring(node.body)
            if (
                rest
                and _first_line(rest[0]) > _signature_end(node)
                and not _does_nothing(rest)
                and not is_overload(node)
            ):
                yield Function(
                    path,
                    node.lineno,
                    prefix + node.name,
                    _first_line(node),
                    _first_line(rest[0]),
                    node.end_lineno or node.lineno,
                )
        elif isinstance(node, ast.ClassDef):
            yield from _found(path, node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If) and _is_for_type_checkers(node.test):
            yield from _found(path, node.orelse, prefix)
        else:
            for block in inner_blocks(node):
                yield from _found(path, block, prefix)


def is_overload(node: FunctionNode) -> bool:
    names = (getattr(one, "attr", getattr(one, "id", "")) for one in node.decorator_list)
    return "overload" in names


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _signature_end(node: FunctionNode) -> int:
    """The last line that runs when the function is defined."""
    parts = [*ast.iter_child_nodes(node.args), *([node.returns] if node.returns else [])]
    ends: list[int] = [getattr(part, "end_lineno", 0) for part in parts]
    return max([node.lineno, *ends])


def _is_for_type_checkers(test: ast.expr) -> bool:
    return getattr(test, "attr", getattr(test, "id", "")) == "TYPE_CHECKING"


def _does_nothing(body: list[ast.stmt]) -> bool:
    """`pass`, `...`, a `return` of nothing, or the refusal of an abstract method: a stub already."""
    return all(
        isinstance(one, ast.Pass)
        or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        or (isinstance(one, ast.Return) and _is_nothing(one.value))
        or (isinstance(one, ast.Raise) and _is_refusal(one.exc))
        for one in body
    )


def _is_nothing(value: ast.expr | None) -> bool:
    return (
        value is None
        or (isinstance(value, ast.Constant) and value.value is None)
        or (isinstance(value, ast.Name) and value.id == "NotImplemented")
    )


def _is_refusal(raised: ast.expr | None) -> bool:
    if isinstance(raised, ast.Call):
        raised = raised.func
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
