"""The deletable functions of a source file, and the lines that show whether they ran."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gametape.tasks.mining.removal.python_source import FunctionNode, body_after_docstring, inner_blocks, parse_module


@dataclass(frozen=True, order=True)
class Function:
    """A function at module level or in a class, by its position. Nested functions are part of the outer one."""

    path: str
    line: int
    """The line of its `def`."""
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
    """Every deletable function. Its body begins on a line after the signature, so that coverage of the line tells
    whether it ran, and contains a statement that does something."""
    try:
        module = parse_module(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [*_deletable_functions(path, module.body, "")]


def _deletable_functions(path: str, body: list[ast.stmt], prefix: str) -> Iterator[Function]:
    for node in body:
        if isinstance(node, FunctionNode):
            statements = body_after_docstring(node.body)
            if (
                statements
                and _first_line(statements[0]) > _signature_end(node)
                and not _does_nothing(statements)
                and not is_overload(node)
            ):
                yield Function(
                    path,
                    node.lineno,
                    prefix + node.name,
                    _first_line(node),
                    _first_line(statements[0]),
                    node.end_lineno or node.lineno,
                )
        elif isinstance(node, ast.ClassDef):
            yield from _deletable_functions(path, node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If) and _is_for_type_checkers(node.test):
            yield from _deletable_functions(path, node.orelse, prefix)
        else:
            for block in inner_blocks(node):
                yield from _deletable_functions(path, block, prefix)


def is_overload(node: FunctionNode) -> bool:
    names = (getattr(decorator, "attr", getattr(decorator, "id", "")) for decorator in node.decorator_list)
    return "overload" in names


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _signature_end(node: FunctionNode) -> int:
    """The last line that runs when the function is defined."""
    parts = [*ast.iter_child_nodes(node.args), *([node.returns] if node.returns else [])]
    ends: list[int] = [getattr(part, "end_lineno", 0) for part in parts]
    return max([node.lineno, *ends])


def _is_for_type_checkers(test: ast.expr) -> bool:
    return getattr(test, "attr", getattr(test, "id", "")) == "TYPE_CHECKING"


def _does_nothing(body: list[ast.stmt]) -> bool:
    """Whether a body is a stub already: `pass`, `...`, a bare `return`, or `raise NotImplementedError`."""
    return all(
        isinstance(statement, ast.Pass)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        or (isinstance(statement, ast.Return) and _is_nothing(statement.value))
        or (isinstance(statement, ast.Raise) and _is_refusal(statement.exc))
        for statement in body
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
