"""Replace the body of a function by a refusal, and nothing else of its file."""

import ast
import re

from gametape.tasks.deletion.carving.python_file import NEWLINE, Edit, FunctionNode, Source, after_docstring

REFUSAL = b"raise NotImplementedError"

_COLON = re.compile(rb"(?:[^:#]|#[^\r\n]*)*:")
_REST_OF_HEADER = re.compile(rb"[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n)")


def stub(source: Source, node: FunctionNode, docstrings: bool) -> Edit:
    """A generator or a coroutine gets the same body: it then refuses when called, or when awaited.

    Comments between the signature and the first statement, behind the last one, and below it at the depth of the
    body go with the body; they explain what is no longer there.
    """
    rest = after_docstring(node.body)
    kept = node.body[0] if docstrings and len(rest) < len(node.body) else None
    end = source.end_of_function(node)
    header = header_end(source, node)
    line = _REST_OF_HEADER.match(source.text, header)
    if line is None:
        start = _start(source, rest[0]) if kept and rest else source.start(node.body[0])
        return Edit(start, end, REFUSAL)
    first = node.body[0]
    indentation = source.text[source.line_start(_start(source, first)) : _start(source, first)]
    if indentation.strip():
        raise ValueError(f"line {first.lineno}: cannot tell how deep the body of {node.name} stands")
    if kept is None:
        return Edit(line.end(), end, indentation + REFUSAL)
    behind = source.end_of_line(source.end(kept))
    if rest and rest[0].lineno > (kept.end_lineno or 0) and (found := NEWLINE.match(source.text, behind)):
        return Edit(found.end(), end, indentation + REFUSAL)
    after = source.end(kept)
    return Edit(after, end, source.newline(header) + indentation + REFUSAL)


def header_end(source: Source, node: FunctionNode) -> int:
    """Behind the colon. Between the last part of a signature and its colon stand commas, brackets and comments."""
    arguments = node.args
    parts: list[ast.AST] = [
        *(one for one in ast.iter_child_nodes(arguments)),
        *getattr(node, "type_params", ()),
        *([node.returns] if node.returns else []),
    ]
    last = max([source.start(node), *(source.end(part) for part in parts)])
    found = _COLON.match(source.text, last)
    if found is None:
        raise ValueError(f"line {node.lineno}: the signature of {node.name} has no end")
    return found.end()


def _start(source: Source, node: ast.stmt) -> int:
    """With the decorators of a definition."""
    line = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
    return source.at(line, node.col_offset)
