"""Find held-out tests in what the agent is given. A test that can be read is no longer held out."""

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
    """Where held-out tests stand in the starting tree: each file with what it gives away.

    Looked for are the test function by its name, where it would be or inherited there, and a whole file of held-out
    tests under any other name. Some cases of a parametrised test may be held out while others are shown: then the
    starting tree has to lack so many of the rows.
    """
    shown = _read(start.only({*suite, *(test.partition("::")[0] for test in tests.held_out)}))
    shown_functions = {test.partition("[")[0] for test in tests.visible}
    held: dict[str, list[str]] = {}
    for test in tests.held_out:
        held.setdefault(test.partition("[")[0], []).append(test)
    pristine = _read(suite)
    for function, cases in held.items():
        if not shown.definitions(function):
            continue
        mixed = function in shown_functions and all("[" in test for test in cases)
        if not mixed or _rows_gone(function, shown, pristine) < len(cases):
            yield from ((function.partition("::")[0], test) for test in cases)
    shown_files = {test.partition("::")[0] for test in tests.visible}
    hidden = {test.partition("::")[0] for test in tests.held_out} - shown_files
    for path, content in start.files.items():
        for twin in sorted(hidden):
            if content.strip() and content == suite.files[twin]:
                yield path, f"all of {twin}"


def _rows_gone(function: str, shown: TestFiles, pristine: TestFiles) -> float:
    """How many cases of a test are in the suite and not in the starting tree, as far as its tables tell. Zero where
    the starting tree has a row that the suite has not; without limit where other things multiply what is missing."""
    start, suite = read_param_axes(shown, function), read_param_axes(pristine, function)
    if start is None or suite is None:
        return 0
    before, after = [*suite.own, *suite.fixtures], [*start.own, *start.fixtures]
    if len(before) != len(after):
        return 0
    counts = []
    certain = True
    for one, other in zip(before, after, strict=True):
        if (one.table is None) != (other.table is None):
            return 0
        rows, left = _rows(one), _rows(other)
        if left - rows:
            return 0
        counts.append((rows.total(), left.total()))
        certain = certain and one.table is not None
    gone = math.prod(number for number, _ in counts) - math.prod(number for _, number in counts)
    return gone if certain or not gone else math.inf


def _rows(axis: ParamAxis) -> Counter[str]:
    """The rows of a table; one that cannot be read counts as a single one."""
    return Counter(map(ast.dump, axis.table.node.elts)) if axis.table else Counter([""])


def _read(tree: SourceTree) -> TestFiles:
    return TestFiles({path: _as_utf8(content) for path, content in tree.files.items() if path.endswith(".py")})


def _as_utf8(content: bytes) -> bytes:
    """A source text as Python reads it, whatever its encoding."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return content.decode(encoding).encode()
    except (SyntaxError, UnicodeDecodeError):
        return content
