"""Runs pytest over a tree, file by file: which tests exist, which the command selects, and their results.

Over the pinned tree this gives the baseline. Over an agent's tree the output comes from untrusted code: it may add
required tests and be shown, but it never counts as proof that a test passed.
"""

import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from gametape.core.errors import BadInput
from gametape.desk.goals.success_command import PytestRun, read_options
from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.project_layout.suite_discovery import pytest_settings, test_files_under
from gametape.verify.jobs import file_of, pytest_options
from gametape.verify.warm_runner import PytestRequest, PytestResult, WarmTestRunner

GoalTestResult = Literal["passed", "failed", "skipped", "xfailed"]
_SECONDS = 180.0
_EVERYWHERE = "."
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, RecursionError, ArithmeticError)
_MAX_TESTS = 50_000


@dataclass
class PytestObservation:
    """The results of one or more pytest runs over a tree."""

    collected: dict[str, None] = field(default_factory=dict)
    results: dict[str, GoalTestResult] = field(default_factory=dict)
    """The results of the selected tests."""
    broken: dict[str, str] = field(default_factory=dict)
    """Files that could not be collected, and the error message."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By file."""

    @property
    def deselected(self) -> list[str]:
        return [test for test in self.collected if test not in self.results]

    def tests_with(self, what: GoalTestResult) -> list[str]:
        return [test for test, result in self.results.items() if result == what]

    def merge(self, other: "PytestObservation") -> None:
        """Add another run. For a test that several runs select, the worst result counts."""
        self.collected |= other.collected
        self.broken |= other.broken
        for test, result in other.results.items():
            if self.results.get(test) in (None, "passed"):
                self.results[test] = result
        for file, seconds in other.seconds.items():
            self.seconds[file] = max(seconds, self.seconds.get(file, 0.0))


@dataclass(frozen=True)
class PytestObserver:
    """Runs pytest with one interpreter (None: gametape's own, without plugins) and the pinned configuration."""

    start: SourceTree
    interpreter: Path | None
    import_roots: tuple[str, ...]

    def survey(self, run: PytestRun) -> tuple[list[str], PytestObservation]:
        """The test files that a run collects in the pinned tree, by pytest's own answer where it gives one, and the
        results of their tests."""
        with self._open_runner(self.start, run) as runner:
            result = runner.run(PytestRequest(self._run_targets(run), collect=True, seconds=_SECONDS))
            refused = str(result.collection_errors.get("", "")).strip()
            if refused and "conftest" not in refused:
                raise BadInput(f"pytest refuses the success command: {refused.splitlines()[-1]}")
            named = {*map(file_of, result.collected), *result.collection_errors}
            if not result.finished or "" in result.collection_errors:
                named |= {*test_files_under(self.start, self._run_targets(run))}
            files = sorted(path for path in named if path in self.start)
            return files, self._observe_files(runner, run, files)

    def observe(
        self, tree: SourceTree, run: PytestRun, files: Iterable[str], seconds: float = _SECONDS
    ) -> PytestObservation:
        """The results of the tests of these files in another tree."""
        with self._open_runner(tree, run) as runner:
            return self._observe_files(runner, run, files, seconds)

    def _observe_files(
        self, runner: WarmTestRunner, run: PytestRun, files: Iterable[str], seconds: float = _SECONDS
    ) -> PytestObservation:
        """For each file, one process collects its tests and another runs the selected ones."""
        observation = PytestObservation()
        for file in files:
            self._observe_file(runner, run, file, observation, seconds)
        return observation

    def _collect(self, runner: WarmTestRunner, file: str, observation: PytestObservation) -> list[str]:
        result = _run_request(runner, PytestRequest((file,), collect=True, seconds=_SECONDS))
        if result.collection_errors or not result.finished:
            message = next(iter(result.collection_errors.values()), "it ended or hung while it was read")
            observation.broken[file] = str(message)
        return _ids(result, file)

    def _observe_file(
        self, runner: WarmTestRunner, run: PytestRun, file: str, observation: PytestObservation, seconds: float
    ) -> None:
        ids = [test for test in self._collect(runner, file, observation) if _is_named(test, run.targets)]
        if not ids:
            return
        result = _run_request(runner, PytestRequest((file,), tuple(ids), seconds=seconds))
        observation.collected |= dict.fromkeys(ids)
        observation.seconds[file] = result.seconds
        for test in ids:
            if test in result.outcomes or not result.finished:
                observation.results[test] = _test_result(result, test)

    def _open_runner(self, tree: SourceTree, run: PytestRun) -> WarmTestRunner:
        configured = (*pytest_options(self.start, self.interpreter), *_configured_selection(self.start))
        options = [*configured, *run.selection_options]
        return WarmTestRunner(tree, self.import_roots, options, self.interpreter or Path(sys.executable))

    def _run_targets(self, run: PytestRun) -> tuple[str, ...]:
        if run.targets:
            return tuple(dict.fromkeys(file_of(target) for target in run.targets))
        hinted = pytest_settings(self.start).get("testpaths", "").split() if run.directory == _EVERYWHERE else []
        present = [target.rstrip("/") for target in hinted if self.start.under([target]).files]
        return tuple(present) or (run.directory,)


def _configured_selection(start: SourceTree) -> list[str]:
    """The test selection of the pinned configuration; its other options are about output or plugins."""
    words: list[str] = []
    for line in pytest_settings(start).get("addopts", "").splitlines():
        words += [line.strip()] if words[-1:] in (["-k"], ["-m"]) else _split(line)
    return read_options(words)[1]


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _run_request(runner: WarmTestRunner, request: PytestRequest) -> PytestResult:
    """Run a request. A malformed answer from untrusted code is treated as no answer."""
    try:
        return runner.run(request)
    except _MALFORMED:
        runner.close()
        return PytestResult()


def _ids(result: PytestResult, file: str) -> list[str]:
    collected: Sequence[object] = result.collected if isinstance(result.collected, list) else ()
    ids = [test for test in collected if isinstance(test, str) and file_of(test) == file and test.isprintable()]
    return [*dict.fromkeys(ids)][:_MAX_TESTS]


def _is_named(test: str, targets: Sequence[str]) -> bool:
    """Whether the command selects a test; if it names no id in the test's file, it selects all of them."""
    named = [target for target in targets if "::" in target and file_of(target) == file_of(test)]
    return not named or any(test == target or test.startswith((f"{target}::", f"{target}[")) for target in named)


def _test_result(result: PytestResult, test: str) -> GoalTestResult:
    outcome = result.outcomes.get(test)
    if outcome is None or outcome.result not in ("passed", "skipped"):
        return "failed"
    if outcome.result == "passed":
        return "passed"
    return "xfailed" if outcome.message == "xfail" else "skipped"
