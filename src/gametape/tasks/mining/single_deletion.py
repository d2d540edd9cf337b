"""Which tests need a function: those that fail when it alone is gone."""

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
"""Tests that are asked whether a function is needed, before all are."""


class SingleDeletion:
    """Takes out one function at a time. Safe to use from several threads, each with its own surveyor."""

    def __init__(self, project: Project, baseline: SuiteBaseline, coverage_map: CoverageMap, suite: TestSuite) -> None:
        self._project = project
        self._baseline = baseline
        self._reached = coverage_map
        self._suite = suite
        self._sizes = Counter(map(file_of, baseline.tests))
        self._known: dict[Function, Future[frozenset[str]]] = {}
        self._gate = threading.Lock()

    def some_failing_tests(self, function: Function, surveyor: WarmTestRunner) -> frozenset[str]:
        """Tests that fail without this function: a few that can be told apart, if there are such, else all.

        Asked once, whoever asks first.
        """
        with self._gate:
            asked = function not in self._known
            answer = self._known.setdefault(function, Future())
        if asked:
            try:
                answer.set_result(self._look_for_some(function, surveyor))
            except BaseException as error:
                answer.set_exception(error)
                raise
        return answer.result()

    def failing_among(self, tests: Collection[str], function: Function, surveyor: WarmTestRunner) -> frozenset[str]:
        """Those of these tests that fail without this function."""
        tree = self._project.tree
        carved = delete_functions(tree, [function], "stub", test_paths=self._project.test_paths).tree
        run = run_tests(surveyor, self._baseline, changed_files(tree, carved), self._baseline.in_order(tests))
        return frozenset(run.failing())

    def _look_for_some(self, function: Function, surveyor: WarmTestRunner) -> frozenset[str]:
        tests = self._reached.tests[function]
        few = self._few(self._baseline.in_order(tests))
        failing = self.failing_among(few, function, surveyor)
        if len(few) < len(tests) and unsplittable(self._suite.units, {function: failing}):
            failing = self.failing_among(tests, function, surveyor)
        return failing

    def _few(self, tests: Sequence[str]) -> list[str]:
        """Some of these tests, of different functions and from small files: what these cost depends on the day, and the
        choice may not."""
        found: list[str] = []
        for _, ids in sorted(group_by_file(tests).items(), key=lambda item: self._sizes[item[0]]):
            chosen = [*{function_of(test): test for test in ids}.values()][:_FEW]
            found += chosen if len(chosen) > 1 else ids[:_FEW]
            if len(found) >= _FEW / 2:
                break
        return found
