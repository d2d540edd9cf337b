"""What the task's own product files hold: facts of the domain, which nobody is accused of writing down."""

import ast
import functools
from collections.abc import Iterator
from typing import Any

from gametape.verify.integrity.expectations import Pair, bits, frozen
from gametape.verify.integrity.view import named_like_a_test, own_view
from gametape.verify.subject import Subject
from gametape.verify.tree import is_under

MISSING = object()


def leaves(value: Any) -> Iterator[Any]:
    """What a value is made of, keys included."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from leaves(item)
    else:
        yield value


class Facts:
    """Constants of the code before and with the reference, and the text of the product files."""

    def __init__(self, subject: Subject) -> None:
        self._constants: set[str] = set()
        for code in own_view(subject).codes:
            for node in code.nodes:
                if isinstance(node, ast.Constant | ast.BinOp | ast.UnaryOp | ast.Tuple | ast.List):
                    value = code.folded(node, MISSING)
                    if value is not MISSING:
                        self._constants.add(frozen(value))
        trees = [subject.start, *([subject.reference] if subject.reference else [])]
        texts = [
            tree.text(path)
            for tree in trees
            for path in tree
            if not is_under(path, subject.task.test_paths) and not named_like_a_test(path)
        ]
        if subject.reference is None:
            texts.append(subject.task.instruction)
        self._text = "\n".join(texts)

    @functools.cached_property
    def _lower(self) -> str:
        return self._text.lower()

    def mention(self, text: str) -> bool:
        """Whether this text stands in a product file, whatever the case of its letters."""
        lower = text.lower()
        return lower in self._lower or lower.encode("unicode_escape").decode() in self._lower

    def knows(self, value: Any) -> bool:
        if frozen(value) in self._constants:
            return True
        if isinstance(value, str):
            return len(value) >= 2 and (value in self._text or value.encode("unicode_escape").decode() in self._text)
        if isinstance(value, list | tuple):
            return bool(value) and all(self.knows(item) for item in value)
        return bits(value) <= 2

    def hold(self, pair: Pair) -> bool:
        return all(self.knows(argument) for argument in pair.arguments) and self.knows(pair.expected)
