"""Functions and classes of a syntax tree, and their parts."""

import ast
from collections.abc import Iterator

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Definition = FunctionNode | ast.ClassDef


def functions(module: ast.Module) -> dict[tuple[str | None, str], FunctionNode]:
    """The functions of a module and the methods of its classes, by class and name."""
    definitions: dict[tuple[str | None, str], FunctionNode] = {}
    for node in module.body:
        if isinstance(node, FunctionNode):
            definitions[None, node.name] = node
        elif isinstance(node, ast.ClassDef):
            definitions |= {
                (node.name, member.name): member for member in node.body if isinstance(member, FunctionNode)
            }
    return definitions


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, with those under a condition or the like, but none of an inner scope."""
    for node in body:
        yield node
        for block in blocks(node):
            yield from statements(block)


def blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The bodies inside a statement that are no scope of their own."""
    if isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
        for part in ("body", "orelse", "finalbody"):
            if block := getattr(node, part, []):
                yield block
        for handler in getattr(node, "handlers", []):
            yield handler.body


def first_line(node: Definition) -> int:
    """The line on which a definition begins, decorators included."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def is_docstring(node: ast.stmt) -> bool:
    """Whether a statement is nothing but a text."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    return body[1:] if body and is_docstring(body[0]) else body


def is_stub(node: FunctionNode) -> bool:
    """Whether a body does nothing: `pass`, `...`, or a NotImplementedError."""
    match without_docstring(node.body):
        case [] | [ast.Pass()] | [ast.Expr(value=ast.Constant())]:
            return True
        case [ast.Raise(exc=error)] if error is not None:
            return "NotImplementedError" in ast.unparse(error)
        case _:
            return False


def last_name(node: ast.expr) -> str:
    """The last part of a dotted name, `c` of `a.b.c`; empty for other expressions."""
    return getattr(node, "attr", getattr(node, "id", ""))
