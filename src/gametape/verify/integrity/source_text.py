"""The text of a Python file as the interpreter reads it, and whether its tree can be read at all."""

import ast
import re

_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)")
_MOST_NESTED, _MOST_NODES = 250, 150_000


def declared_encoding(content: bytes) -> str | None:
    """The coding that a file declares, in the interpreter's way; None where it does not."""
    for line in content.splitlines()[:2]:
        if found := _CODING.match(line):
            return found.group(1).decode().lower().replace("_", "-")
        if not re.match(rb"^[ \t\f]*(?:[#\r\n]|$)", line):
            return None
    return None


def decode_source(content: bytes) -> str:
    """The text of a file in the coding it declares; unknown and broken codings are read as UTF-8, as far as it goes."""
    try:
        text = content.decode(declared_encoding(content) or "utf-8")
    except (LookupError, ValueError, AssertionError):
        text = content.decode("utf-8", "replace")
    return text.removeprefix("\ufeff")


def flatten_elif(tree: ast.Module) -> ast.Module:
    """Long chains of `elif` as one `if` after the other: rules read branches, and not the way to them."""
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


def is_small_enough(tree: ast.AST) -> bool:
    """Whether reading it takes a reasonable time: rules go up and down in the tree."""
    depth, count, level = 0, 0, [tree]
    while level and depth <= _MOST_NESTED and count <= _MOST_NODES:
        depth, count = depth + 1, count + len(level)
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return not level
