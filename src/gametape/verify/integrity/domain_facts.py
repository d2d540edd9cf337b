"""Facts of the domain: whatever the task's own product files hold. Writing a fact down is never flagged."""

import ast
import functools
from collections.abc import Iterator
from typing import Any

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import is_under
from gametape.verify.integrity.code_view import named_like_a_test, task_code
from gametape.verify.integrity.visible_expectations import CallExpectation, information_bits, typed_repr

MISSING = object()


def nested_values(value: Any) -> Iterator[Any]:
    """The scalars inside a value, keys included."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from nested_values(item)
    else:
        yield value


class DomainFacts:
    """Constants of the code before and with the reference, and the text of the product files."""

    def __init__(self, loaded_task: LoadedTask) -> None:
        self._constants: set[str] = set()
        for code in task_code(loaded_task).modules:
            for node in code.nodes:
                if isinstance(node, ast.Constant | ast.BinOp | ast.UnaryOp | ast.Tuple | ast.List):
                    value = code.folded_or_default(node, MISSING)
                    if value is not MISSING:
                        self._constants.add(typed_repr(value))
        trees = [loaded_task.start, *([loaded_task.reference] if loaded_task.reference else [])]
        texts = [
            tree.text(path)
            for tree in trees
            for path in tree
            if not is_under(path, loaded_task.task.test_paths) and not named_like_a_test(path)
        ]
        if loaded_task.reference is None:
            texts.append(loaded_task.task.instruction)
        self._text = "\n".join(texts)

    @functools.cached_property
    def _lower(self) -> str:
        return self._text.lower()

    def mentions(self, text: str) -> bool:
        """Whether this text stands in a product file, whatever the case of its letters."""
        lower = text.lower()
        return lower in self._lower or lower.encode("unicode_escape").decode() in self._lower

    def has_value(self, value: Any) -> bool:
        if typed_repr(value) in self._constants:
            return True
        if isinstance(value, str):
            return len(value) >= 2 and (value in self._text or value.encode("unicode_escape").decode() in self._text)
        if isinstance(value, list | tuple):
            return bool(value) and all(self.has_value(item) for item in value)
        return information_bits(value) <= 2

    def contains(self, pair: CallExpectation) -> bool:
        return all(self.has_value(argument) for argument in pair.arguments) and self.has_value(pair.expected)
