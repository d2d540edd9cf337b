"""Layer `diff`: the change compared with the reference's.

- size: lines of code changed; up to 1.5 times the reference's plus ten scores in full;
- locality: files changed that the reference leaves alone. Source files weigh most, added ones half; tests, documents
  and other files beside the sources a tenth; files that tools leave behind nothing;
- similarity: of the shape of the functions that the reference changes. The smallest part, so that a different structure
  that works loses little.
"""

import ast
from pathlib import PurePosixPath

from gametape.core.verdict import Check
from gametape.record.source_tree import SourceTree, is_under
from gametape.verify.layers.code_shape import function_shape, similarity
from gametape.verify.layers.context import ScoringContext
from gametape.verify.layers.new_findings import summarize
from gametape.verify.layers.tree_change import TreeChange
from gametape.verify.static_analysis.python_source import Function, functions, parse_source

NAME = "diff"

SIZE, LOCALITY, SIMILARITY = 0.4, 0.4, 0.2

_DOCUMENTS = (".md", ".rst", ".txt")
_LEFT_BEHIND = ("__pycache__", "*.egg-info", "*.pyc", ".*")


def score(context: ScoringContext) -> Check | None:
    expected = context.reference_change
    if context.reference is None or expected is None or not expected.files:
        return None
    size = _size(context.change.size, expected.size)
    outside = _outside(context, expected)
    locality = 1 / (1 + sum(outside.values()) / 2)
    similar = _similarity(context.sources, context.reference, expected)
    parts = [(SIZE, size), (LOCALITY, locality), *([(SIMILARITY, similar)] if similar is not None else [])]
    total = sum(weight * part for weight, part in parts) / sum(weight for weight, _ in parts)
    detail = f"{context.change.size} lines changed, {expected.size} by the reference"
    if outside:
        detail += f"; outside the feature: {summarize(sorted(outside, key=lambda path: -outside[path]))}"
    if similar is not None:
        detail += f"; functions {similar:.0%} alike"
    return context.check(NAME, total, detail)


def _size(changed: int, expected: int) -> float:
    allowed = 1.5 * expected + 10
    return min(1.0, allowed / changed) if changed else 1.0


def _outside(context: ScoringContext, expected: TreeChange) -> dict[str, float]:
    """Files changed that the reference does not change, with the weight of each."""
    submission, loaded_task = context.submission, context.submission.loaded_task
    assert loaded_task.reference is not None
    before, after = loaded_task.start.files, loaded_task.reference.files
    by_reference = {path for path in {*before, *after} if before.get(path) != after.get(path)} | set(expected.files)
    touched = {*submission.changed_files, *submission.changed_sources, *context.change.files}
    weights = {path: _weight(context, path) for path in touched - by_reference if not _left_behind(path)}
    return {path: weight for path, weight in weights.items() if weight}


def _weight(context: ScoringContext, path: str) -> float:
    task = context.submission.loaded_task.task
    name = PurePosixPath(path).name
    is_test = is_under(path, task.test_paths) or name.startswith("test_") or name == "conftest.py"
    if is_test or name.endswith(_DOCUMENTS) or not is_under(path, task.source_paths):
        return 0.1
    return 1.0 if path in context.start else 0.5


def _left_behind(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return any(PurePosixPath(part).match(pattern) for part in parts for pattern in _LEFT_BEHIND)


def _similarity(sources: SourceTree, reference: SourceTree, expected: TreeChange) -> float | None:
    """The mean similarity to the functions that the reference changes; None where it changes none."""
    similarities = []
    for path, change in expected.files.items():
        module = parse_source(reference.files.get(path, b""))
        own_functions = _by_name(parse_source(sources.files.get(path, b"")))
        for name, function in functions(module) if module else ():
            lines = range(function.lineno, (function.end_lineno or function.lineno) + 1)
            if change.written.intersection(lines):
                partner = own_functions.get(name)
                similarities.append(similarity(function_shape(function), function_shape(partner)) if partner else 0.0)
    return sum(similarities) / len(similarities) if similarities else None


def _by_name(module: ast.Module | None) -> dict[str, Function]:
    return dict(functions(module)) if module else {}
