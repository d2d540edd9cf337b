"""Generate bugs in a function, of the kind that people make and review misses.

A mutation splices the function's own text: operators, operands, arguments and statements are replaced, exchanged or
dropped, never unparsed. So the rest of the file stays byte for byte, and the mutated line keeps its author's style.
"""

import ast
import bisect
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from gametape.syntax.source import parse
from gametape.tasks.mining.functions import Function
from gametape.tasks.mining.mutation.expressions import expression_mutations
from gametape.tasks.mining.mutation.scope import MutationEdits, MutationScope
from gametape.tasks.mining.mutation.statements import statement_mutations
from gametape.tasks.mining.removal.python_source import (
    NEWLINE,
    FunctionNode,
    NotPythonError,
    PythonSource,
    source_from_text,
)

_MARK = "\ufeff"


@dataclass(frozen=True)
class Mutation:
    path: str
    line: int
    """The first line that is different."""
    kind: str
    before: str
    """The lines that it changes."""
    after: str
    source: str
    """The whole file, with the bug."""


def function_mutations(source: str, function: Function, rng: random.Random) -> Iterator[Mutation]:
    """Every mutation of a function, in a random order that takes the kinds in turn.

    Each changes the syntax tree, and neither a text for people (docstring, message of an exception, warning or log
    line) nor an annotation. Only a run can tell whether a test notices it.
    """
    mark = _MARK if source.startswith(_MARK) else ""
    try:
        parsed = source_from_text(source.removeprefix(_MARK))
    except NotPythonError:
        return
    node = parsed.functions.get(function.line)
    if node is None:
        return
    original = _shape(_text(parsed, node, parsed.text, 0))
    seen: set[bytes] = set()
    scope = MutationScope(parsed, node)
    for mutation in _in_turn([*expression_mutations(scope), *statement_mutations(scope)], rng):
        text = parsed.apply_edits(mutation.edits)
        if text in seen:
            continue
        seen.add(text)
        shape = _shape(_text(parsed, node, text, len(text) - len(parsed.text)))
        if shape is not None and shape != original:
            yield _mutation(parsed, function.path, mutation, text, mark)


def _in_turn(mutations: list[MutationEdits], rng: random.Random) -> Iterator[MutationEdits]:
    kinds: dict[str, list[MutationEdits]] = defaultdict(list)
    for mutation in mutations:
        kinds[mutation.kind].append(mutation)
    for of_kind in kinds.values():
        rng.shuffle(of_kind)
    while kinds:
        for kind in rng.sample(sorted(kinds), len(kinds)):
            yield kinds[kind].pop()
            if not kinds[kind]:
                del kinds[kind]


def _text(source: PythonSource, node: FunctionNode, text: bytes, longer: int) -> bytes:
    """The text of the function alone, so that it can be parsed. `longer` is how far an edit has moved its end."""
    start = source.line_starts[node.lineno - 1]
    function = text[start : source.end_of_function(node) + longer]
    return b"if 1:\n" + function if node.col_offset else function


def _shape(text: bytes) -> str | None:
    try:
        return ast.dump(parse(text.decode("utf-8")))
    except (SyntaxError, ValueError):
        return None


def _mutation(source: PythonSource, path: str, edits: MutationEdits, text: bytes, mark: str) -> Mutation:
    start = source.line_start(min(edit.start for edit in edits.edits))
    end = max(edit.end for edit in edits.edits)
    if end == start or source.line_start(end) != end:
        newline = NEWLINE.search(source.text, end)
        end = newline.end() if newline else len(source.text)
    longer = len(text) - len(source.text)
    return Mutation(
        path,
        bisect.bisect_right(source.line_starts, start),
        edits.kind,
        source.text[start:end].decode("utf-8"),
        text[start : end + longer].decode("utf-8"),
        mark + text.decode("utf-8"),
    )
