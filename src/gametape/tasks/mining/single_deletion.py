"""Find the tests that need a function: those that fail when this function alone is deleted."""

import threading
from collections import Counter
from collections.abc import Collection, Sequence
from concurrent.futures import Future

from gametape.tasks.mining.baseline import SuiteBaseline
from gametape.tasks.mining.functions import Function
from gametape.tasks.mining.held_out.removable_tests import TestSuite
from gametape.tasks.mining.held_out.split import unsplittable
from gametape.tasks.mining.removal.deletion import delete_functions
from gametape.tasks.mining.suite_analysis import CoverageMap
from gametape.tasks.mining.suite_run import changed_files, run_tests
from gametape.tasks.project import Project
from gametape.verify.jobs import file_of, function_of, group_by_file
from gametape.verify.warm_runner import WarmTestRunner

_FEW = 8
"""Tests that are run first; all are run only if these do not suffice."""


class SingleDeletion:
    """Deletes one function at a time. Safe to use from several threads, each with its own runner."""

    def __init__(self, project: Project, baseline: SuiteBaseline, coverage_map: CoverageMap, suite: TestSuite) -> None:
        self._project = project
        self._baseline = baseline
        self._coverage_map = coverage_map
        self._suite = suite
        self._sizes = Counter(map(file_of, baseline.tests))
        self._known: dict[Function, Future[frozenset[str]]] = {}
        self._lock = threading.Lock()

    def some_failing_tests(self, function: Function, test_runner: WarmTestRunner) -> frozenset[str]:
        """Tests that fail without this function: a few that can be split into visible and held-out ones, else all.

        The result is computed once and shared by all threads.
        """
        with self._lock:
            is_first = function not in self._known
            result = self._known.setdefault(function, Future())
        if is_first:
            try:
                result.set_result(self._find_some(function, test_runner))
            except BaseException as error:
                result.set_exception(error)
                raise
        return result.result()

    def failing_among(self, tests: Collection[str], function: Function, test_runner: WarmTestRunner) -> frozenset[str]:
        """Those of these tests that fail when the function is deleted."""
        tree = self._project.tree
        reduced = delete_functions(tree, [function], "stub", test_paths=self._project.test_paths).tree
        outcome = run_tests(test_runner, self._baseline, changed_files(tree, reduced), self._baseline.in_order(tests))
        return frozenset(outcome.failing())

    def _find_some(self, function: Function, test_runner: WarmTestRunner) -> frozenset[str]:
        tests = self._coverage_map.tests[function]
        few = self._few(self._baseline.in_order(tests))
        failing = self.failing_among(few, function, test_runner)
        if len(few) < len(tests) and unsplittable(self._suite.units, {function: failing}):
            failing = self.failing_among(tests, function, test_runner)
        return failing

    def _few(self, tests: Sequence[str]) -> list[str]:
        """A few of these tests, of different test functions and from small files. Files are ranked by their number of
        tests, not by time, so that the choice is deterministic."""
        few: list[str] = []
        for _, ids in sorted(group_by_file(tests).items(), key=lambda item: self._sizes[item[0]]):
            of_functions = [*{function_of(test): test for test in ids}.values()][:_FEW]
            few += of_functions if len(of_functions) > 1 else ids[:_FEW]
            if len(few) >= _FEW / 2:
                break
        return few
