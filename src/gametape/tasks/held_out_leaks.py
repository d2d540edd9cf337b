"""Find held-out tests in the agent's starting tree. A test that the agent can read is not held out."""

import ast
import io
import math
import tokenize
from collections import Counter
from collections.abc import Iterator

from gametape.core.task import TaskTests
from gametape.record.source_tree import SourceTree
from gametape.syntax.parametrization import ParamAxis, read_param_axes
from gametape.syntax.suite_files import TestFiles


def find_held_out_leaks(tests: TaskTests, start: SourceTree, suite: SourceTree) -> Iterator[tuple[str, str]]:
    """Held-out tests in the starting tree: pairs of a file and what it contains.

    A test is found by the name of its function, defined or inherited where the suite has it. A file that holds only
    held-out tests is found under any name. If some cases of a parametrised test are held out and others visible, the
    starting tree must lack at least as many rows as cases are held out.
    """
    visible_files = _read(start.only({*suite, *(test.partition("::")[0] for test in tests.held_out)}))
    visible_functions = {test.partition("[")[0] for test in tests.visible}
    held_out_cases: dict[str, list[str]] = {}
    for test in tests.held_out:
        held_out_cases.setdefault(test.partition("[")[0], []).append(test)
    suite_files = _read(suite)
    for function, cases in held_out_cases.items():
        if not visible_files.definitions(function):
            continue
        mixed = function in visible_functions and all("[" in test for test in cases)
        if not mixed or _rows_gone(function, visible_files, suite_files) < len(cases):
            yield from ((function.partition("::")[0], test) for test in cases)
    visible_paths = {test.partition("::")[0] for test in tests.visible}
    hidden = {test.partition("::")[0] for test in tests.held_out} - visible_paths
    for path, content in start.files.items():
        for held_out_path in sorted(hidden):
            if content.strip() and content == suite.files[held_out_path]:
                yield path, f"all of {held_out_path}"


def _rows_gone(function: str, visible_files: TestFiles, suite_files: TestFiles) -> float:
    """How many cases of a test the suite has and the starting tree lacks, counted from its parameter tables.

    Zero if the starting tree has a row that the suite lacks. Infinite if rows are missing and another axis, which
    cannot be read, multiplies them."""
    start, suite = read_param_axes(visible_files, function), read_param_axes(suite_files, function)
    if start is None or suite is None:
        return 0
    before, after = [*suite.own, *suite.fixtures], [*start.own, *start.fixtures]
    if len(before) != len(after):
        return 0
    counts = []
    certain = True
    for suite_axis, start_axis in zip(before, after, strict=True):
        if (suite_axis.table is None) != (start_axis.table is None):
            return 0
        rows, left = _rows(suite_axis), _rows(start_axis)
        if left - rows:
            return 0
        counts.append((rows.total(), left.total()))
        certain = certain and suite_axis.table is not None
    missing = math.prod(number for number, _ in counts) - math.prod(number for _, number in counts)
    return missing if certain or not missing else math.inf


def _rows(axis: ParamAxis) -> Counter[str]:
    """The rows of an axis; a table that cannot be read counts as one row."""
    return Counter(map(ast.dump, axis.table.node.elts)) if axis.table else Counter([""])


def _read(tree: SourceTree) -> TestFiles:
    return TestFiles({path: _as_utf8(content) for path, content in tree.files.items() if path.endswith(".py")})


def _as_utf8(content: bytes) -> bytes:
    """A source file decoded by its declared encoding, as UTF-8."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return content.decode(encoding).encode()
    except (SyntaxError, UnicodeDecodeError):
        return content
