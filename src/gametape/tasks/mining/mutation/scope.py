"""The parts of a function that a mutation may change, and the edits on them."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gametape.tasks.mining.removal.python_source import ByteEdit, FunctionNode, PythonSource, body_after_docstring

_LOGGING = frozenset({"debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print"})


@dataclass(frozen=True)
class MutationEdits:
    kind: str
    edits: tuple[ByteEdit, ...]


class MutationScope:
    """A function's body without texts for people: messages, annotations, f-strings."""

    def __init__(self, source: PythonSource, node: FunctionNode) -> None:
        self.source = source
        self.node = node
        self.body = body_after_docstring(node.body)
        self.nodes = [*self._walk(self.body)]
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        self.receiver = arguments[0].arg if arguments and arguments[0].arg in ("self", "cls") else None
        stored = [child.id for child in self.nodes if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)]
        self.variables = [*dict.fromkeys([*(child.arg for child in arguments if child.arg != self.receiver), *stored])]
        self.stored = stored

    def _walk(self, nodes: list[ast.stmt]) -> Iterator[ast.AST]:
        waiting: list[ast.AST] = [*reversed(nodes)]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.JoinedStr):
                continue
            yield node
            waiting += reversed([child for child in ast.iter_child_nodes(node) if not _is_for_people(node, child)])

    def text(self, node: ast.AST) -> bytes:
        return self.source.text[self.source.start(node) : self.source.end(node)]

    def replaced(self, node: ast.AST, text: bytes) -> ByteEdit:
        return ByteEdit(self.source.start(node), self.source.end(node), text)

    def exchanged(self, one: ast.AST, other: ast.AST) -> tuple[ByteEdit, ByteEdit]:
        return self.replaced(one, self.text(other)), self.replaced(other, self.text(one))

    def between(self, left: ast.AST, right: ast.AST, operator: bytes, by: bytes) -> tuple[ByteEdit, ...]:
        """Replace the operator between two operands. No edit if there is also a comment between them."""
        start, end = self.source.end(left), self.source.start(right)
        gap = self.source.text[start:end]
        match = re.search(rb"\s+".join(map(re.escape, operator.split())), gap)
        if match is None or b"#" in gap:
            return ()
        return (ByteEdit(start + match.start(), start + match.end(), by),)


def _is_for_people(parent: ast.AST, child: ast.AST) -> bool:
    match parent:
        case ast.Raise() | ast.arguments():
            return True
        case ast.Assert(msg=text) | ast.AnnAssign(annotation=text) | ast.FunctionDef(returns=text):
            return child is text
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=function)) | ast.Call(func=function):
            return _is_logging(function) or getattr(function, "id", "") == "cast"
    return False


def _is_logging(function: ast.expr) -> bool:
    return getattr(function, "attr", getattr(function, "id", "")) in _LOGGING
