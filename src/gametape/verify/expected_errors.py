"""The errors that tests wait for, and the texts that they look for in these, read from their source."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from gametape.syntax.definitions import last_name
from gametape.syntax.expected_calls import WAITING_CALLS
from gametape.syntax.source import parse_or_none

_READ = frozenset({"value", "exception", "args"})
"""What a test asks for where it reads an error that it waited for."""
_PART_OF = frozenset({"assertIn", "search", "match", "fullmatch", "findall"})
_WITNESSES = (
    (r"\[\^(.)[^\]]*\]", " "),
    (r"\\d|\[0-9\]", "1"),
    (r"\\w|\[a-z[^\]]*\]", "a"),
    (r"\\s", " "),
    (r"(?<!\\)\((?:\?:)?|(?<!\\)\)", ""),
    (r"\\[bBAZ]|[\^$]", ""),
    (r"(?<!\\)\.[*+]\??|(?<!\\)[*+?]|\{\d*,?\d*\}", ""),
    (r"(?<!\\)\|", " "),
    (r"\\(.)", r"\1"),
)
"""How the parts of a pattern are replaced by text that they match, or that lies between what they match."""


def errors_waited_for(test_files: Iterable[bytes]) -> Counter[str]:
    """The names of the errors, and how often some tests wait for each."""
    named: Counter[str] = Counter()
    for call in _waiting_calls(test_files):
        if call.args:
            error = call.args[0]
            several = error.elts if isinstance(error, ast.Tuple) else [error]
            named.update(last_name(one) for one in several if isinstance(one, ast.Name | ast.Attribute))
    return named


def texts_of_errors(test_files: Iterable[bytes]) -> list[str]:
    """The texts that some tests look for in errors, each once: as written, and with a match in place of a pattern.

    A text that is looked for under a name may be any text of its file.
    """
    texts: list[str] = []
    for content in test_files:
        looked_for = [*_looked_for([content])]
        texts += [text for node in looked_for for text in _constants(node)]
        if any(isinstance(inner, ast.Name) and inner.id != "re" for node in looked_for for inner in ast.walk(node)):
            texts += _constants(parse_or_none(content) or ast.Module([], []))
    return list(dict.fromkeys(text for written in texts for text in (written, _witness(written)) if text))


def texts_looked_for(test_files: Iterable[bytes]) -> list[str]:
    """The texts that some tests look for as a part of something, each once: in comparisons by `in`, and in the calls
    of test cases and of `re` that ask the same."""
    found: list[str] = []
    for content in test_files:
        for node in ast.walk(parse_or_none(content) or ast.Module([], [])):
            match node:
                case ast.Compare(left=part, ops=[ast.In(), *_]):
                    found += _constants(part)
                case ast.Call(func=func, args=[part, _, *_]) if last_name(func) in _PART_OF:
                    found += [text for written in _constants(part) for text in (written, _witness(written))]
    return list(dict.fromkeys(text for text in found if text))


def _waiting_calls(test_files: Iterable[bytes]) -> Iterator[ast.Call]:
    for content in test_files:
        for node in ast.walk(parse_or_none(content) or ast.Module([], [])):
            if isinstance(node, ast.Call) and last_name(node.func) in WAITING_CALLS:
                yield node


def _looked_for(test_files: Iterable[bytes]) -> Iterator[ast.expr]:
    """The patterns that tests hand to what waits, and the other sides of comparisons with a read error."""
    files = [*test_files]
    for call in _waiting_calls(files):
        yield from (keyword.value for keyword in call.keywords if keyword.arg == "match")
        if last_name(call.func) == "assertRaisesRegex":
            yield from call.args[1:2]
    for content in files:
        for node in ast.walk(parse_or_none(content) or ast.Module([], [])):
            if isinstance(node, ast.Compare) and any(
                isinstance(inner, ast.Attribute) and inner.attr in _READ for inner in ast.walk(node)
            ):
                yield from (side for side in (node.left, *node.comparators) if isinstance(side, ast.Constant))


def _constants(node: ast.AST) -> list[str]:
    return [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant) and isinstance(inner.value, str)]


def _witness(pattern: str) -> str:
    """A text that a simple pattern matches."""
    for part, text in _WITNESSES:
        pattern = re.sub(part, text, pattern)
    return pattern
