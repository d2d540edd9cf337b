"""All the twins that a test file allows, the most telling mix of them first."""

import ast
import itertools
import random
import zlib
from collections.abc import Collection, Iterator, Mapping

from gametape.verify.twins.cases import twins_of_method, twins_of_mock
from gametape.verify.twins.comparisons import Made, twins_of_assert
from gametape.verify.twins.edit import Edit, Twin, apply
from gametape.verify.twins.exceptions import twins_of_guard
from gametape.verify.twins.parametrize import twins_of_cases
from gametape.verify.twins.reach import reached, tests
from gametape.verify.twins.scope import Module, Test
from gametape.verify.twins.statements import twins_of_call, twins_of_helper

MOST = 8
"""Twins for each test function."""
_PER_STATEMENT = 2


def candidates(
    source: str, functions: Collection[str] | None = None, helpers: Mapping[str, str] | None = None
) -> list[Twin]:
    """Twins for the test functions of a file, each a contradiction by construction.

    `functions` names those that are tests where the file's names do not say so (`test...`). `helpers` are the sources
    of other modules of the suite, by the name under which this file imports them. A file that does not parse has none.
    """
    try:
        module = Module(source, helpers or {})
    except (SyntaxError, ValueError):
        return []
    wanted = None if functions is None else frozenset(functions)
    return [twin for test in tests(module, wanted) for twin in _of(test)]


def _of(test: Test) -> list[Twin]:
    rng = random.Random(zlib.crc32(f"{test.name} {test.text.of(test.node)}".encode()))
    by_kind: dict[str, list[Twin]] = {}
    for kind, case, edits in _made(test, rng):
        twins = by_kind.setdefault(kind, [])
        twin = Twin(test.name, kind, case, tuple(sorted(edits, key=lambda edit: (edit.start, edit.end))))
        if twin not in twins and _parses(test, twin):
            twins.append(twin)
    for twins in by_kind.values():
        rng.shuffle(twins)
    kinds = sorted(by_kind.values(), key=lambda twins: (twins[0].kind == "error" if twins else True, rng.random()))
    mixed = itertools.chain.from_iterable(itertools.zip_longest(*kinds))
    return list(itertools.islice((twin for twin in mixed if twin is not None), MOST))


def _made(test: Test, rng: random.Random) -> Iterator[tuple[str, str | None, tuple[Edit, ...]]]:
    for statement in reached(test):
        makers: list[Iterator[Made]] = [
            twins_of_assert(test, statement, rng),
            twins_of_guard(test, statement, rng),
            twins_of_method(test, statement, rng),
            twins_of_mock(test, statement),
            twins_of_helper(test, statement, rng),
            twins_of_call(test, statement, rng),
        ]
        for maker in makers:
            counts: dict[str, int] = {}
            for kind, edits in maker:
                counts[kind] = counts.get(kind, 0) + 1
                if counts[kind] <= _PER_STATEMENT:
                    yield kind, None, edits
    yield from (("case", case, edits) for case, edits in itertools.islice(twins_of_cases(test, rng), MOST))


def _parses(test: Test, twin: Twin) -> bool:
    """Whether the function is still one, with everything in it where it was."""
    first = min([test.node.lineno, *(each.lineno for each in test.node.decorator_list)])
    start, end = test.text.rows(first, test.node.end_lineno or first)
    moved = [Edit(edit.start - start, edit.end - start, edit.text) for edit in twin.edits]
    if any(edit.start < 0 or edit.end > end - start for edit in moved):
        return False
    indented = "class _:\n" if test.node.col_offset else ""
    new = apply(test.text.source[start:end], [Twin(twin.function, twin.kind, twin.case, tuple(moved))])
    try:
        ast.parse(indented + new)
    except (SyntaxError, ValueError):
        return False
    return True
