"""Which tests of a code base can be relied on: those that pass in a process of their own file, twice as written and in
three other orders, always under the same name. The others are set aside, each with a reason.

A code base too many of whose tests are set aside is refused: nobody could say what a task made from it asks for.
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
"""Runs in another order, beside two as written."""
FIRST_RUN_SECONDS = 30.0
"""Of processor time for a test file about which nothing is known yet."""
_LEAST_SECONDS, _SLACK = 5.0, 10.0
_LEAST_SILENCE = 3.0
_MOST_RED = 0.05
_MOST_MOODY = 0.25

_RED = ("needs_network", "writes_outside", "missing_dependency", "hangs", "crashes", "red_baseline")
_MOODY = ("order", "flaky", "changes_files")
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
    """Those that can be relied on."""
    set_aside: Mapping[str, tuple[str, ...]]
    """The others, by reason."""
    seconds: Mapping[str, float]
    """What the tests of each file take, by the clock."""
    slowest: float
    """What the slowest test, or reading the slowest file, takes."""
    together: frozenset[str]
    """Files whose tests do the same in one process with all others."""
    collected: tuple[str, ...]
    """Every test there is, in pytest's order."""

    @property
    def flaky(self) -> int:
        """Tests whose result or name is a matter of chance or order."""
        return sum(len(self.set_aside.get(reason, ())) for reason in ("flaky", "order", "unstable_id"))

    @property
    def silence(self) -> float:
        """How long nothing may be heard of a run in which nothing hangs."""
        return _LEAST_SILENCE + _LEAST_SECONDS * self.slowest

    def seconds_for(self, file: str) -> float:
        """What a test file may take, in processor time, before it counts as hanging."""
        return max(_LEAST_SECONDS, _SLACK * self.seconds.get(file, 0.0))

    def in_order(self, tests: Collection[str]) -> list[str]:
        """Tests in the order of the suite, so that every run of them is the same."""
        wanted = {*tests}
        return [test for test in self.tests if test in wanted]


def establish_baseline(runner: ProjectRunner, seed: int) -> SuiteBaseline:
    """Find the tests and run them often enough, or say why this cannot be mined."""
    collected, stable = _collect(runner)
    found = [test for test in collected if test in stable]
    unstable = [test for test in collected if test not in stable]
    files = group_by_file(found)
    first = _by_file(runner, surveys_by_file(found, lambda _: FIRST_RUN_SECONDS, watch=True))
    seconds = {file: findings.seconds for file, findings in first.items()}
    allowed = functools.partial(_allowed, seconds)
    hanging = {file for file, findings in first.items() if not findings.finished}
    alive = [test for test in found if file_of(test) not in hanging]
    rng = random.Random(seed)
    plans = [surveys_by_file(alive, allowed)]
    plans += [surveys_by_file(alive, allowed, random.Random(rng.random())) for _ in range(SHUFFLED_RUNS)]
    joint = PytestRequest(tuple(files), tuple(alive), seconds=sum(map(allowed, files)))
    runs = [_by_file(runner, plan) for plan in plans]
    (joined,) = runner.survey([joint])
    reasons = dict.fromkeys(unstable, "unstable_id")
    for test in found:
        if reason := _why_not(test, first, runs, joined):
            reasons[test] = reason
    reliable = tuple(test for test in found if test not in reasons)
    _refuse_if_red(reliable, reasons, first)
    apart = {file_of(test) for test in reliable if joined.result(test) != "passed"}
    set_aside = {reason: tuple(test for test in reasons if reasons[test] == reason) for reason in {*reasons.values()}}
    return SuiteBaseline(
        tests=reliable,
        set_aside=dict(sorted(set_aside.items())),
        seconds=seconds,
        slowest=max(_longest_silence(findings) for findings in first.values()),
        together=frozenset(set(files) - apart),
        collected=tuple(collected),
    )


def _longest_silence(findings: PytestResult) -> float:
    tests = [outcome.seconds for outcome in findings.outcomes.values()]
    return max([findings.seconds - sum(tests), *tests])


def _allowed(seconds: Mapping[str, float], file: str) -> float:
    return max(_LEAST_SECONDS, _SLACK * seconds[file])


def _collect(runner: ProjectRunner) -> tuple[list[str], frozenset[str]]:
    """Every test under the name it had in one sandbox, and those that had the same name in another."""
    step = PytestRequest(project_test_files(runner.project), collect=True, seconds=FIRST_RUN_SECONDS)
    one, other = runner.map_over_sandboxes((step, step), functools.partial(_collected, runner))
    ids = [test for test in dict.fromkeys(one.collected) if file_of(test) in runner.project.tree and "\n" not in test]
    if not ids:
        raise _nothing(runner, one)
    return ids, frozenset(other.collected).intersection(ids)


def _collected(runner: ProjectRunner, step: PytestRequest, surveyor: WarmTestRunner) -> PytestResult:
    """What pytest finds in a new sandbox, first in one process, then each file that could not be read there alone."""
    surveyor.close()
    whole = surveyor.run(step)
    for file in [name for name in whole.collection_errors if name in runner.project.tree]:
        alone = surveyor.run(PytestRequest((file,), collect=True, seconds=step.seconds))
        whole.collected += alone.collected
        if not alone.collection_errors and alone.collected:
            del whole.collection_errors[file]
    return whole


def _nothing(runner: ProjectRunner, found: PytestResult) -> ProjectRefused:
    where = ", ".join(runner.project.test_paths)
    if found.timed_out:
        return ProjectRefused("hangs", f"reading the tests in {where} does not end")
    said = [text.strip().splitlines()[-1].strip() for text in found.collection_errors.values() if text.strip()]
    if not said:
        return ProjectRefused("no_tests", f"pytest finds no tests in {where}")
    reason = next((name for name, words in _READING.items() if any(word in said[0] for word in words)), "red_baseline")
    return ProjectRefused(reason, f"no test in {where} can be read: {said[0].removeprefix('E ').strip()}")


_READING = {"missing_dependency": _MISSING, "syntax_error": ("SyntaxError", "IndentationError")}


def _by_file(runner: ProjectRunner, steps: Sequence[PytestRequest]) -> dict[str, PytestResult]:
    """What became of each file's step."""
    return dict(zip((step.paths[0] for step in steps), runner.survey(steps), strict=True))


def _why_not(
    test: str, first: Mapping[str, PytestResult], runs: Sequence[Mapping[str, PytestResult]], joined: PytestResult
) -> str | None:
    """Why a test is set aside; None for one that can be relied on."""
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
    elif "passed" in as_written | shuffled or joined.result(test) == "passed":
        reason = "order"
    else:
        reason = _why_red(test, first[file])
    return reason


def _why_red(test: str, findings: PytestResult) -> str:
    """What a test that always fails seems to lack."""
    said = findings.message(test)
    if test in findings.side_effects.get("network", ()):
        return "needs_network"
    if test in findings.side_effects.get("outside", ()):
        return "writes_outside"
    if any(word in said for word in _MISSING):
        return "missing_dependency"
    return "red_baseline"


def _refuse_if_red(reliable: Sequence[str], reasons: Mapping[str, str], first: Mapping[str, PytestResult]) -> None:
    counted = Counter(reasons.values())
    total = len(reliable) + counted.total()
    red = sum(counted[reason] for reason in _RED)
    moody = sum(counted[reason] for reason in _MOODY)
    if reliable and red <= _MOST_RED * total and moody <= _MOST_MOODY * total:
        return
    pool = _RED if red > _MOST_RED * total else _MOODY if moody > _MOST_MOODY * total else [*counted]
    reason = max(pool, key=lambda one: counted[one])
    example = next(test for test in reasons if reasons[test] == reason)
    said = first[file_of(example)].message(example).strip()
    more = f" ({said.splitlines()[-1].strip()[:200]})" if said else ""
    raise ProjectRefused(
        reason,
        f"{counted[reason]} of {total} tests cannot be relied on: {_ADVICE[reason]}; one is {example}{more}",
    )
