"""Parse Python source: decode it as the interpreter does, and bound what an untrusted author may make us read."""

import ast
import re
import threading
import warnings

_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)")
_MAX_CHARACTERS, _MAX_DEPTH, _MAX_NODES = 1 << 20, 250, 150_000
_one_at_a_time = threading.Lock()


def declared_encoding(content: bytes) -> str | None:
    """The encoding that a file declares, found in the interpreter's way; None where it declares none."""
    for line in content.splitlines()[:2]:
        if match := _CODING.match(line):
            return match.group(1).decode().lower().replace("_", "-")
        if not re.match(rb"^[ \t\f]*(?:[#\r\n]|$)", line):
            return None
    return None


def decode_source(content: bytes) -> str:
    """The text of a file in the encoding it declares; unknown and broken ones are read as UTF-8 with replacements."""
    try:
        text = content.decode(declared_encoding(content) or "utf-8")
    except (LookupError, ValueError, AssertionError):
        text = content.decode("utf-8", "replace")
    return text.removeprefix("\ufeff")


def parse(source: str | bytes, bounded: bool = False) -> ast.Module:
    """The syntax tree of a source. Raises SyntaxError for everything that cannot be parsed, whatever the reason.

    `bounded` also refuses what is too large or nested too deep to be walked in a reasonable time, and flattens chains
    of `elif`: ask for it where the author is not trusted. Bytes are decoded by the interpreter, which refuses broken
    encodings.
    """
    if bounded and len(source) > _MAX_CHARACTERS:
        raise SyntaxError(f"longer than {_MAX_CHARACTERS:,} characters")
    try:
        tree = _parse(source)
    except (ValueError, LookupError, RecursionError, MemoryError) as problem:
        raise SyntaxError(str(problem)) from problem
    if bounded and not _is_small_enough(_flatten_elif(tree)):
        raise SyntaxError(f"nested deeper than {_MAX_DEPTH} or more than {_MAX_NODES:,} nodes")
    return tree


def _parse(source: str | bytes) -> ast.Module:
    """`ast.parse`, one thread at a time: Python 3.11 counts the depth of all threads' trees together, and fails with a
    SystemError where two are made at once."""
    with _one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def parse_or_none(source: str | bytes | None, bounded: bool = False) -> ast.Module | None:
    try:
        return None if source is None else parse(source, bounded)
    except SyntaxError:
        return None


def parse_expression(source: str) -> ast.expr:
    """The one expression that a text is. Raises SyntaxError for anything else."""
    match parse(f"({source})").body:
        case [ast.Expr(value=value)]:
            return value
    raise SyntaxError(f"no expression: {source!r}")


def _is_small_enough(tree: ast.AST) -> bool:
    depth, count, level = 0, 0, [tree]
    while level and depth <= _MAX_DEPTH and count <= _MAX_NODES:
        depth, count = depth + 1, count + len(level)
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return not level


def _flatten_elif(tree: ast.Module) -> ast.Module:
    """Long chains of `elif` become one `if` after the other: rules read branches, and not the way to them."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if not isinstance(body, list):
                continue
            flat: list[ast.stmt] = []
            for item in body:
                flat.append(item)
                last = item
                while isinstance(last, ast.If) and len(last.orelse) == 1 and isinstance(last.orelse[0], ast.If):
                    flat += last.orelse
                    last.orelse, last = [], last.orelse[0]
            body[:] = flat
    return tree
