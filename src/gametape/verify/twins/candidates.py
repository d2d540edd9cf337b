"""Candidate twins of a test file: a mix of kinds, at most eight for each function."""

import itertools
import random
import zlib
from collections.abc import Collection, Iterator, Mapping

from gametape.syntax.definitions import first_line
from gametape.syntax.source import parse_or_none
from gametape.syntax.source_text import apply_edits
from gametape.verify.twins.assertion_twins import TwinEdits, twins_of_assert, twins_of_method, twins_of_mock
from gametape.verify.twins.exception_twins import twins_of_guard
from gametape.verify.twins.parametrized_twins import twins_of_cases
from gametape.verify.twins.parsed_tests import ParsedTestFile, TestFunction
from gametape.verify.twins.reachability import find_tests, reached_statements
from gametape.verify.twins.statement_twins import twins_of_call, twins_of_helper
from gametape.verify.twins.twin import Twin

MAX_TWINS_PER_FUNCTION = 8
"""Twins for each test function."""
_PER_STATEMENT = 2


def candidate_twins(
    source: str, functions: Collection[str] | None = None, helpers: Mapping[str, str] | None = None
) -> list[Twin]:
    """Twins for the test functions of a file, each a contradiction by construction.

    `functions` names those that are tests where the file's names do not say so (`test...`). `helpers` are the sources
    of other modules of the suite, by the name under which this file imports them. A file that does not parse has none.
    """
    try:
        module = ParsedTestFile(source, helpers or {})
    except SyntaxError:
        return []
    wanted = None if functions is None else frozenset(functions)
    return [twin for test in find_tests(module, wanted) for twin in _twins_of_function(test)]


def _twins_of_function(test: TestFunction) -> list[Twin]:
    rng = random.Random(zlib.crc32(f"{test.name} {test.text.text_of(test.node)}".encode()))
    by_kind: dict[str, list[Twin]] = {}
    for twin in _raw_twins(test, rng):
        twins = by_kind.setdefault(twin.kind, [])
        if twin not in twins and _parses(test, twin):
            twins.append(twin)
    for twins in by_kind.values():
        rng.shuffle(twins)
    kinds = sorted(by_kind.values(), key=lambda twins: (twins[0].kind == "error" if twins else True, rng.random()))
    mixed = itertools.chain.from_iterable(itertools.zip_longest(*kinds))
    return list(itertools.islice((twin for twin in mixed if twin is not None), MAX_TWINS_PER_FUNCTION))


def _raw_twins(test: TestFunction, rng: random.Random) -> Iterator[Twin]:
    for statement in reached_statements(test):
        makers: list[Iterator[TwinEdits]] = [
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
                    yield Twin(test.name, kind, tuple(sorted(edits, key=lambda edit: (edit.start, edit.end))))
    for _ in range(_PER_STATEMENT):
        if cases := list(twins_of_cases(test, rng)):
            yield Twin.of_cases(test.name, "case", cases)


def _parses(test: TestFunction, twin: Twin) -> bool:
    """Whether the function is still one, with everything in it where it was."""
    first = first_line(test.node)
    start, end = test.text.line_span(first, test.node.end_lineno or first)
    if any(edit.start < start or edit.end > end for edit in twin.edits):
        return False
    indented = "class _:\n" if test.node.col_offset else ""
    new = apply_edits(test.text.source[start:end], [edit.moved(-start) for edit in twin.edits])
    return parse_or_none(indented + new) is not None
