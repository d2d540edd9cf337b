"""The minimum number of tests in files that cannot be collected yet, because the code they import is not written.

pytest can only count these tests once the code exists, and that code is the agent's. So they are counted before: every
test function has at least one test, and with stub modules for all that is missing pytest counts the parameters.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gametape.desk.goals.pytest_observation import PytestObserver
from gametape.desk.goals.success_command import PytestRun
from gametape.record.source_tree import SourceTree, is_under
from gametape.tasks.mining.project_layout.suite_discovery import pytest_settings
from gametape.verify.jobs import function_of

_MISSING_MODULE = re.compile(r"No module named '([\w.]+)'")
_ROUNDS = 4
_SECONDS = 20.0
"""A limit for tests over stub modules, which may wait for ever."""
_PLACEHOLDER = "[missing-"
_STUB_MODULE = b"""

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    import unittest.mock
    return unittest.mock.MagicMock(name=name)
"""


@dataclass
class MinimumCounts:
    """What is known of tests that cannot be collected yet."""

    minimums: dict[str, int] = field(default_factory=dict)
    """For each test function (`file::function`), the minimum number of tests that it must have."""
    excused: list[str] = field(default_factory=list)
    """Functions whose own marks skip or excuse their tests."""

    def merge(self, other: "MinimumCounts") -> None:
        self.minimums = dict(Counter(self.minimums) | Counter(other.minimums))
        self.excused += [name for name in other.excused if name not in self.excused]


def count_minimums(
    observer: PytestObserver, run: PytestRun, broken: Mapping[str, str], test_paths: list[str]
) -> MinimumCounts:
    """Count the tests in the broken test files of a run."""
    if not broken:
        return MinimumCounts()
    missing = _MISSING_MODULE.findall("\n".join(broken.values()))
    for _ in range(_ROUNDS):
        observation = observer.observe(_with_stubs(observer, broken, missing, test_paths), run, broken, _SECONDS)
        more = _MISSING_MODULE.findall("\n".join(observation.broken.values()))
        if not set(more) - set(missing):
            break
        missing += more
    excused = {function_of(test) for test in (*observation.tests_with("skipped"), *observation.tests_with("xfailed"))}
    excused -= {function_of(test) for test in (*observation.tests_with("passed"), *observation.tests_with("failed"))}
    selective = bool(run.selection_options) or any("::" in target for target in run.targets)
    countable = [file for file in broken if file in observation.broken or not selective]
    function_names = [name for file in countable for name in _test_functions_in(observer.start, file)]
    counted = Counter("::".join(function_of(test)) for test in observation.results)
    minimums = Counter(dict.fromkeys(function_names, 1)) | counted
    names = ["::".join(function) for function in sorted(excused)]
    return MinimumCounts({name: count for name, count in minimums.items() if name not in names}, names)


def required_tests(minimums: Mapping[str, int], collected: Iterable[str]) -> list[str]:
    """The tests that an attempt must pass in such files: all that exist, and placeholder ids for those that are
    missing."""
    existing = [test for test in collected if "::".join(function_of(test)) in minimums]
    counts = Counter("::".join(function_of(test)) for test in existing)
    missing_ids = [
        name if number == 0 and not counts[name] else f"{name}{_PLACEHOLDER}{number}]"
        for name, count in minimums.items()
        for number in range(count - counts[name])
    ]
    return [*existing, *missing_ids]


def is_placeholder(test: str) -> bool:
    return _PLACEHOLDER in test


def _test_functions_in(start: SourceTree, file: str) -> list[str]:
    """The test functions in the source of a file; none where the project configures other names for tests."""
    if {"python_functions", "python_classes"} & {*pytest_settings(start)}:
        return []
    try:
        module = ast.parse(start.files[file])
    except (SyntaxError, ValueError):
        return []
    return [f"{file}::{name}" for name in _names(module.body)]


def _names(body: list[ast.stmt], inside: str = "") -> list[str]:
    names = []
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            fixture = any("fixture" in ast.dump(mark) for mark in node.decorator_list)
            names += [inside + node.name] if node.name.startswith("test") and not fixture else []
        elif isinstance(node, ast.ClassDef) and _is_collected(node):
            names += _names(node.body, f"{inside}{node.name}::")
    return names


def _is_collected(node: ast.ClassDef) -> bool:
    if any("TestCase" in ast.dump(base) for base in node.bases):
        return True
    plain = {getattr(inner, "name", "") for inner in node.body}
    off = any("__test__" in ast.dump(inner) for inner in node.body if isinstance(inner, ast.Assign))
    return node.name.startswith("Test") and "__init__" not in plain and not off


def _with_stubs(
    observer: PytestObserver, files: Iterable[str], missing: Iterable[str], test_paths: list[str]
) -> SourceTree:
    """The tree in which every product module has every name, and modules that the tests import exist."""
    start = observer.start
    changed = {
        path: (content if _parses(content) else b"") + _STUB_MODULE
        for path, content in start.files.items()
        if path.endswith(".py") and not is_under(path, test_paths) and not path.endswith("conftest.py")
    }
    own = {path.split("/")[0].removesuffix(".py") for root in observer.import_roots for path in _below(start, root)}
    own |= {name.partition(".")[0] for name in missing}
    for name in {name for file in files for name in imported_modules(start.files[file])}:
        stems = [f"{'' if root == '.' else root + '/'}{name.replace('.', '/')}" for root in observer.import_roots]
        existing = any(f"{stem}.py" in start or start.under([stem]).files for stem in stems)
        if name.partition(".")[0] in own and not existing:
            changed[f"{stems[0]}.py"] = _STUB_MODULE
    return SourceTree(changed).overlaid_on(start)


def _below(start: SourceTree, root: str) -> list[str]:
    return [path.removeprefix("" if root == "." else f"{root}/") for path in start.under([root])]


def imported_modules(source: bytes) -> set[str]:
    """The modules that a source imports by absolute name."""
    try:
        nodes = [*ast.walk(ast.parse(source))]
    except (SyntaxError, ValueError):
        return set()
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {
        node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level
    }


def _parses(source: bytes) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True
