"""The errors that tests wait for, read from their source."""

import ast
from collections import Counter
from collections.abc import Iterable

from gametape.syntax.definitions import last_name
from gametape.syntax.source import parse_or_none

_WAITING = ("raises", "assertRaises", "assertRaisesRegex")


def errors_waited_for(test_files: Iterable[bytes]) -> Counter[str]:
    """The names of the errors, and how often some tests wait for each."""
    named: Counter[str] = Counter()
    for content in test_files:
        for node in ast.walk(parse_or_none(content) or ast.Module([], [])):
            match node:
                case ast.Call(func=func, args=[error, *_]) if last_name(func) in _WAITING:
                    several = error.elts if isinstance(error, ast.Tuple) else [error]
                    named.update(last_name(one) for one in several if isinstance(one, ast.Name | ast.Attribute))
    return named
