"""What may be told about a deleted function: how it is called and what it promises, and no line of how it works."""

import ast
import functools
import re
import textwrap
from collections.abc import Iterable
from typing import NamedTuple

from gametape.tasks.deletion.functions import Function
from gametape.tasks.deletion.leaks.bodies import FunctionNode, functions_by_line

LEAST_CODE = 12
"""Shorter lines, such as `return x`, give nothing away."""
_MADE_OF_WORDS = re.compile(r"[\w\s]*")
_DOCTEST = re.compile(r"\s*(?:>>>|\.\.\.)(?:\s|$)")


class Told(NamedTuple):
    """A function as an instruction may show it."""

    signature: str
    """With decorators and annotations, as the source has it."""
    docstring: str
    code: frozenset[str]
    """The lines of its body that must not be shown."""

    @property
    def summary(self) -> str:
        """The first sentence or paragraph of the docstring, in one line."""
        return " ".join(self.docstring.split("\n\n", 1)[0].split())


@functools.lru_cache(maxsize=10_000)
def told(function: Function, source: str) -> Told:
    """Read a function from the original text of its file."""
    node = functions_by_line(source)[function.line]
    lines = source.splitlines()
    return Told(_signature(node, function, lines), ast.get_docstring(node) or "", _code(function, lines))


def _signature(node: FunctionNode, function: Function, lines: list[str]) -> str:
    """The lines before the body; written anew if they cannot be told from it."""
    for end in range(function.line, node.body[0].lineno):
        text = textwrap.dedent("\n".join(lines[function.first - 1 : end]))
        try:
            ast.parse(text + "\n    ...\n")
        except (SyntaxError, ValueError):
            continue
        return text
    bare = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(bare, ast.FunctionDef | ast.AsyncFunctionDef)
    bare.body = [ast.Expr(ast.Constant(...))]
    return ast.unparse(bare).removesuffix("\n    ...").removesuffix(" ...")


def _code(function: Function, lines: list[str]) -> frozenset[str]:
    body = (line.strip() for line in lines[function.body - 1 : function.last])
    return frozenset(line for line in body if len(line) >= LEAST_CODE and not _MADE_OF_WORDS.fullmatch(line))


def shows_code(line: str, code: Iterable[str]) -> bool:
    """Whether a line of text holds a line of code. Examples in doctests are no code of the function."""
    return not _DOCTEST.match(line) and any(one in line for one in code)


def without_code(text: str, code: Iterable[str]) -> str:
    """A text less the lines that hold code."""
    return "\n".join(line for line in text.splitlines() if not shows_code(line, code))
