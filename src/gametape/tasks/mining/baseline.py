"""Find the reliable tests of a project: those that pass with their file in its own process, twice in the written order
and in three other orders, always under the same id. The others are set aside, each with a reason.

A project is refused if too many of its tests are set aside, because its tasks would have unclear goals.
"""

import functools
import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from gametape.tasks.mining.project_layout.suite_discovery import project_test_files
from gametape.tasks.mining.project_runner import ProjectRunner, surveys_by_file
from gametape.tasks.project import ProjectRefused
from gametape.verify.jobs import file_of, group_by_file
from gametape.verify.warm_runner import PytestRequest, PytestResult, WarmTestRunner

SHUFFLED_RUNS = 3
"""Runs in another order, in addition to two in the written one."""
FIRST_RUN_SECONDS = 30.0
"""Processor time for a test file that has not run yet."""
_LEAST_SECONDS, _SLACK = 5.0, 10.0
_LEAST_SILENCE = 3.0
_MAX_RED = 0.05
_MAX_UNSTABLE = 0.25

_RED = ("needs_network", "writes_outside", "missing_dependency", "hangs", "crashes", "red_baseline")
_UNSTABLE = ("order", "flaky", "changes_files")
_ADVICE = {
    "needs_network": "they ask for a network, and there is none in the sandbox",
    "writes_outside": "they write outside the code base",
    "missing_dependency": "a module is missing; --python takes an interpreter that has it",
    "hangs": "they do not end in time",
    "crashes": "they end the process they run in",
    "red_baseline": "they fail before anything was deleted",
    "order": "they pass or fail by what ran before them",
    "flaky": "they pass in one run and fail in another",
    "changes_files": "they change or delete files of the code base itself",
    "unstable_id": "their names change from run to run",
    "skipped": "they are skipped here",
}
_MISSING = ("ModuleNotFoundError", "No module named")


@dataclass(frozen=True)
class SuiteBaseline:
    tests: tuple[str, ...]
    """The reliable ones."""
    set_aside: Mapping[str, tuple[str, ...]]
    """The others, by reason."""
    seconds: Mapping[str, float]
    """By file: wall-clock seconds of its tests."""
    slowest: float
    """Seconds of the slowest test, or of importing the slowest file."""
    together: frozenset[str]
    """Files whose tests give the same results in one process with all others."""
    collected: tuple[str, ...]
    """Every test, in pytest's order."""

    @property
    def flaky(self) -> int:
        """The number of tests whose result or id depends on chance or order."""
        return sum(len(self.set_aside.get(reason, ())) for reason in ("flaky", "order", "unstable_id"))

    @property
    def silence(self) -> float:
        """Seconds without output after which a run counts as hanging."""
        return _LEAST_SILENCE + _LEAST_SECONDS * self.slowest

    def seconds_for(self, file: str) -> float:
        """Processor seconds after which a test file counts as hanging."""
        return max(_LEAST_SECONDS, _SLACK * self.seconds.get(file, 0.0))

    def in_order(self, tests: Collection[str]) -> list[str]:
        """Those of these tests that are reliable, in the order of the suite, so that every run of them is the same."""
        wanted = {*tests}
        return [test for test in self.tests if test in wanted]


def establish_baseline(runner: ProjectRunner, seed: int) -> SuiteBaseline:
    """Collect the tests and run them five times. Raises `ProjectRefused` if too few are reliable."""
    collected, stable = _collect(runner)
    stable_ids = [test for test in collected if test in stable]
    unstable = [test for test in collected if test not in stable]
    files = group_by_file(stable_ids)
    first = _by_file(runner, surveys_by_file(stable_ids, lambda _: FIRST_RUN_SECONDS, watch=True))
    seconds = {file: result.seconds for file, result in first.items()}
    allowed = functools.partial(_allowed, seconds)
    hanging = {file for file, result in first.items() if not result.finished}
    alive = [test for test in stable_ids if file_of(test) not in hanging]
    rng = random.Random(seed)
    plans = [surveys_by_file(alive, allowed)]
    plans += [surveys_by_file(alive, allowed, random.Random(rng.random())) for _ in range(SHUFFLED_RUNS)]
    joint_request = PytestRequest(tuple(files), tuple(alive), seconds=sum(map(allowed, files)))
    runs = [_by_file(runner, plan) for plan in plans]
    (joint_result,) = runner.survey([joint_request])
    reasons = dict.fromkeys(unstable, "unstable_id")
    for test in stable_ids:
        if reason := _why_not(test, first, runs, joint_result):
            reasons[test] = reason
    reliable = tuple(test for test in stable_ids if test not in reasons)
    _refuse_if_red(reliable, reasons, first)
    separate = {file_of(test) for test in reliable if joint_result.result(test) != "passed"}
    set_aside = {reason: tuple(test for test in reasons if reasons[test] == reason) for reason in {*reasons.values()}}
    return SuiteBaseline(
        tests=reliable,
        set_aside=dict(sorted(set_aside.items())),
        seconds=seconds,
        slowest=max(_longest_silence(result) for result in first.values()),
        together=frozenset(set(files) - separate),
        collected=tuple(collected),
    )


def _longest_silence(result: PytestResult) -> float:
    tests = [outcome.seconds for outcome in result.outcomes.values()]
    return max([result.seconds - sum(tests), *tests])


def _allowed(seconds: Mapping[str, float], file: str) -> float:
    return max(_LEAST_SECONDS, _SLACK * seconds[file])


def _collect(runner: ProjectRunner) -> tuple[list[str], frozenset[str]]:
    """The test ids collected in one sandbox, and those of them that a second sandbox collected too."""
    request = PytestRequest(project_test_files(runner.project), collect=True, seconds=FIRST_RUN_SECONDS)
    first, second = runner.map_over_sandboxes((request, request), functools.partial(_collected, runner))
    ids = [test for test in dict.fromkeys(first.collected) if file_of(test) in runner.project.tree and "\n" not in test]
    if not ids:
        raise _no_tests_error(runner, first)
    return ids, frozenset(second.collected).intersection(ids)


def _collected(runner: ProjectRunner, request: PytestRequest, test_runner: WarmTestRunner) -> PytestResult:
    """What pytest collects in a new sandbox: all files in one process, then each file that failed there alone."""
    test_runner.close()
    result = test_runner.run(request)
    for file in [name for name in result.collection_errors if name in runner.project.tree]:
        alone = test_runner.run(PytestRequest((file,), collect=True, seconds=request.seconds))
        result.collected += alone.collected
        if not alone.collection_errors and alone.collected:
            del result.collection_errors[file]
    return result


def _no_tests_error(runner: ProjectRunner, result: PytestResult) -> ProjectRefused:
    paths = ", ".join(runner.project.test_paths)
    if result.timed_out:
        return ProjectRefused("hangs", f"reading the tests in {paths} does not end")
    errors = [text.strip().splitlines()[-1].strip() for text in result.collection_errors.values() if text.strip()]
    if not errors:
        return ProjectRefused("no_tests", f"pytest finds no tests in {paths}")
    reason = next(
        (name for name, words in _READING.items() if any(word in errors[0] for word in words)), "red_baseline"
    )
    return ProjectRefused(reason, f"no test in {paths} can be read: {errors[0].removeprefix('E ').strip()}")


_READING = {"missing_dependency": _MISSING, "syntax_error": ("SyntaxError", "IndentationError")}


def _by_file(runner: ProjectRunner, requests: Sequence[PytestRequest]) -> dict[str, PytestResult]:
    """The result of each request, by its file."""
    return dict(zip((request.paths[0] for request in requests), runner.survey(requests), strict=True))


def _why_not(
    test: str, first: Mapping[str, PytestResult], runs: Sequence[Mapping[str, PytestResult]], joint_result: PytestResult
) -> str | None:
    """Why a test is set aside; None for a reliable one."""
    file = file_of(test)
    if not first[file].finished:
        return "hangs" if first[file].timed_out else "crashes"
    if any(run[file].changed_files for run in (first, *runs)):
        return "changes_files"
    as_written = {first[file].result(test), runs[0][file].result(test)}
    shuffled = {run[file].result(test) for run in runs[1:]}
    if as_written | shuffled == {"passed"}:
        reason = None
    elif len(as_written) > 1:
        reason = "flaky"
    elif as_written <= {"skipped", "missing"}:
        reason = "skipped"
    elif "passed" in as_written | shuffled or joint_result.result(test) == "passed":
        reason = "order"
    else:
        reason = _why_red(test, first[file])
    return reason


def _why_red(test: str, result: PytestResult) -> str:
    """The likely reason why a test always fails."""
    message = result.message(test)
    if test in result.side_effects.get("network", ()):
        return "needs_network"
    if test in result.side_effects.get("outside", ()):
        return "writes_outside"
    if any(word in message for word in _MISSING):
        return "missing_dependency"
    return "red_baseline"


def _refuse_if_red(reliable: Sequence[str], reasons: Mapping[str, str], first: Mapping[str, PytestResult]) -> None:
    counted = Counter(reasons.values())
    total = len(reliable) + counted.total()
    red = sum(counted[reason] for reason in _RED)
    unstable_count = sum(counted[reason] for reason in _UNSTABLE)
    if reliable and red <= _MAX_RED * total and unstable_count <= _MAX_UNSTABLE * total:
        return
    choices = _RED if red > _MAX_RED * total else _UNSTABLE if unstable_count > _MAX_UNSTABLE * total else [*counted]
    reason = max(choices, key=lambda word: counted[word])
    example = next(test for test in reasons if reasons[test] == reason)
    message = first[file_of(example)].message(example).strip()
    detail = f" ({message.splitlines()[-1].strip()[:200]})" if message else ""
    raise ProjectRefused(
        reason,
        f"{counted[reason]} of {total} tests cannot be relied on: {_ADVICE[reason]}; one is {example}{detail}",
    )
