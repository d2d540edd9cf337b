"""Mutations of statements: one dropped, one too early, a branch or a case left out."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from gametape.tasks.mining.mutation.scope import MutationEdits, MutationScope
from gametape.tasks.mining.removal.python_source import ByteEdit, inner_blocks

_REST_OF_LINE = re.compile(rb"[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")
_COMMENT = re.compile(rb"[ \t\f]*#")
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def statement_mutations(scope: MutationScope) -> Iterator[MutationEdits]:
    yield from _in_block(scope, scope.body)
    for node in scope.nodes:
        for block in inner_blocks(node) if isinstance(node, ast.stmt) else ():
            yield from _in_block(scope, block)
        if isinstance(node, ast.If):
            yield from _branches(scope, node)
        elif isinstance(node, ast.Try):
            yield from _handlers(scope, node)
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.Call):
            yield MutationEdits("missing return", (scope.replaced(node, scope.text(node.value)),))
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.Name | ast.Attribute):
            if not _is_first(scope, node):
                yield MutationEdits("wrong return", (scope.replaced(node, b"return None"),))
        elif isinstance(node, ast.Continue | ast.Break):
            yield MutationEdits(
                "loop exit", (scope.replaced(node, b"break" if isinstance(node, ast.Continue) else b"continue"),)
            )


def _is_first(scope: MutationScope, node: ast.stmt) -> bool:
    return scope.body[0] is node


def _in_block(scope: MutationScope, block: list[ast.stmt]) -> Iterator[MutationEdits]:
    for node in block if len(block) > 1 else ():
        if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], _LEAVES):
            kind = "missing guard"
        elif _can_be_forgotten(scope, node):
            kind = "dropped statement"
        else:
            continue
        if edit := _dropped(scope, node):
            yield MutationEdits(kind, (edit,))
    for loop, after in pairwise(block):
        if isinstance(loop, ast.For | ast.While) and isinstance(after, ast.Return) and not loop.orelse:
            yield from (MutationEdits("early return", (edit,)) for edit in _into(scope, loop, after))


def _can_be_forgotten(scope: MutationScope, node: ast.stmt) -> bool:
    """Whether the function still runs without it: a call for its effect, or an assignment to an existing variable."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await) and any(node.value is part for part in scope.nodes)
    if isinstance(node, ast.AugAssign):
        return True
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        if isinstance(target, ast.Name):
            return scope.stored.count(target.id) > 1 or target.id in {
                part.arg for part in ast.walk(scope.node.args) if isinstance(part, ast.arg)
            }
        return isinstance(target, ast.Attribute | ast.Subscript)
    return False


def _dropped(scope: MutationScope, node: ast.stmt) -> ByteEdit | None:
    """Drop whole lines. None below a comment, which would describe what was dropped."""
    source, start = scope.source, scope.source.start(node)
    line = source.line_start(start)
    rest = _REST_OF_LINE.match(source.text, source.end(node))
    if (
        rest is None
        or source.text[line:start].strip()
        or _COMMENT.match(source.text, source.line_starts[node.lineno - 2])
    ):
        return None
    return ByteEdit(line, rest.end())


def _into(scope: MutationScope, loop: ast.For | ast.While, after: ast.Return) -> Iterator[ByteEdit]:
    source = scope.source
    inner = loop.body[0]
    if loop.lineno == inner.lineno or after.lineno != after.end_lineno:
        return
    indentation = source.text[source.line_start(source.start(inner)) : source.start(inner)]
    rest = _REST_OF_LINE.match(source.text, source.end(loop))
    if rest is not None and not indentation.strip():
        yield ByteEdit(rest.end(), source.start(after), indentation)


def _branches(scope: MutationScope, node: ast.If) -> Iterator[MutationEdits]:
    if not node.orelse:
        return
    source = scope.source
    first, last = node.orelse[0], node.orelse[-1]
    rest = _REST_OF_LINE.match(source.text, source.end(node.body[-1]))
    end = _REST_OF_LINE.match(source.text, source.end(last))
    is_case = isinstance(first, ast.If) and first.col_offset == node.col_offset
    if rest and end and not (is_case and getattr(first, "orelse", None)):
        yield MutationEdits("missing case" if is_case else "missing else", (ByteEdit(rest.end(), end.end()),))
    if not is_case and first.col_offset == node.body[0].col_offset and first.lineno > (node.body[-1].end_lineno or 0):
        whole, other = (source.start(node.body[0]), source.end(node.body[-1])), (source.start(first), source.end(last))
        text = source.text
        yield MutationEdits(
            "swapped branches", (ByteEdit(*whole, text[slice(*other)]), ByteEdit(*other, text[slice(*whole)]))
        )


def _handlers(scope: MutationScope, node: ast.Try) -> Iterator[MutationEdits]:
    for handler in node.handlers:
        for statement in handler.body:
            if isinstance(statement, ast.Raise) and len(handler.body) == 1:
                yield MutationEdits("swallowed exception", (scope.replaced(statement, b"pass"),))
        if isinstance(handler.type, ast.Tuple) and len(handler.type.elts) > 1:
            for kept in handler.type.elts:
                yield MutationEdits("exception", (scope.replaced(handler.type, scope.text(kept)),))
