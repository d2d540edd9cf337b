"""What was seen of one run of tests. The texts in it were written by hostile code: show them, never believe them."""

import io
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from gametape.sandbox.output import sanitize
from gametape.sandbox.policy import WORKSPACE
from gametape.sandbox.result import KilledBy, PolicyViolation
from gametape.verify.runner import JobReport, ProcessReport, TestProcess

TestResult = Literal["passed", "failed", "skipped", "timed_out", "missing"]
"""`failed` covers errors of set-up and collection; `skipped` covers xfail: it is not a pass either."""


@dataclass(frozen=True)
class TestOutcome:
    """What became of one test."""

    __test__ = False

    id: str
    result: TestResult
    seconds: float = 0.0
    message: str = ""


@dataclass(frozen=True)
class RunEvent:
    """Something the process of the tests did or had done to it, as told from inside.

    `kind` is an audit event of the interpreter (`socket.connect`, `os.kill`, `ctypes.dlopen`, `open`, ...) or one of
    ours: `patched` (a function of the runner was replaced), `rewritten` (a test file was changed during the run),
    `told twice` (two reports for one test), `left early` (the process ended by itself before its tests had), `died` (by
    a signal), `runner ended` (the trusted parent was ended from inside), `runner tampered` (its limits or priority were
    changed from inside), `garbled` (a report that the runner does not write), `worker lost` (in split mode nobody
    answers any more).
    """

    kind: str
    detail: str
    file: str | None = None
    """The file of the sources that did it, relative to the workspace."""
    line: int | None = None


@dataclass(frozen=True)
class VerifierRun:
    """One pass over a suite in one sandbox."""

    outcomes: dict[str, TestOutcome]
    events: tuple[RunEvent, ...] = ()
    violations: tuple[PolicyViolation, ...] = ()
    killed_by: KilledBy | None = None
    seconds: float = 0.0
    order: str = "as written"
    covered: dict[str, frozenset[int]] = field(default_factory=dict)
    """Lines that ran, by file, where that was asked for."""

    @property
    def broke_down(self) -> bool:
        """Whether processes or time ran out under the tests: then what comes later depends on what came before."""
        ended = {"died", "left early", "runner ended", "worker lost"}
        return (
            self.killed_by is not None
            or any(event.kind in ended for event in self.events)
            or any(outcome.result == "timed_out" for outcome in self.outcomes.values())
        )

    def result(self, test: str) -> TestResult:
        found = self.outcomes.get(test)
        return found.result if found else "missing"


_REPORTED_RESULTS = frozenset(get_args(TestResult)) - {"missing"}
_MOST_EVENTS = 400
_MOST_GARBLED = 40
_LONGEST = 6000


def parse_report(report: JobReport, processes: Iterable[TestProcess], order: str = "as written") -> VerifierRun:
    """What became of the tests of these steps of a job, and everything else that was seen."""
    outcomes: dict[str, TestOutcome] = {}
    events: list[RunEvent] = []
    covered: dict[str, set[int]] = {}
    for step in processes:
        heard = _OutputParser(step, report.processes[step.name])
        outcomes.update(heard.results(report.timed_out))
        events += heard.events
        for path, lines in heard.covered.items():
            covered.setdefault(path, set()).update(lines)
    killed_by = "time" if report.timed_out else report.sandbox.killed_by
    if not report.done and killed_by is None:
        last = report.sandbox.stderr.strip().rpartition("\n")[2]
        how = f"signal {report.sandbox.signal}" if report.sandbox.signal else f"exit code {report.sandbox.exit_code}"
        events.append(RunEvent("runner ended", f"{how} {last}".strip()))
    return VerifierRun(
        outcomes=outcomes,
        events=tuple(dict.fromkeys(events))[:_MOST_EVENTS],
        violations=report.sandbox.violations,
        killed_by=killed_by,
        seconds=report.seconds,
        order=order,
        covered={path: frozenset(lines) for path, lines in covered.items()},
    )


class _OutputParser:
    """The words of one process, taken one by one."""

    def __init__(self, process: TestProcess, report: ProcessReport) -> None:
        self._step = process
        self._report = report
        self._wanted = frozenset(process.tests)
        self._outcomes: dict[str, TestOutcome] = {}
        self._broken: str | None = None
        self._finished = False
        self._garbled = 0
        self.events: list[RunEvent] = []
        self.covered: dict[str, list[int]] = {}
        for line in io.BytesIO(report.output):
            self._take(line)
            if self._garbled > _MOST_GARBLED:
                break
        self.events += [
            RunEvent("rewritten", path) for path in report.changed_files if path in process.laid and not process.blank
        ]
        if report.tampered:
            self.events.append(RunEvent("runner tampered", report.tampered))
        if report.status is not None and not report.timed_out and not self._finished:
            self.events.append(_early_end(report.status))

    def results(self, timed_out: bool) -> dict[str, TestOutcome]:
        """A result for every wanted test, whether or not it was told."""
        late = self._report.timed_out or (timed_out and self._report.status is None)
        untold: TestResult = "failed" if self._broken is not None else "timed_out" if late else "missing"
        return {
            test: self._outcomes.get(test) or TestOutcome(test, untold, message=self._broken or "")
            for test in self._step.tests
        }

    def _take(self, line: bytes) -> None:
        try:
            word = json.loads(line)
            if not isinstance(word, dict) or self._finished:
                raise ValueError("out of turn")
            if "test" in word:
                self._take_result(word)
            elif "event" in word:
                self._take_event(word)
            elif "broken" in word:
                self._broken = (self._broken or "") + (_text(word["message"]) if self._step.messages else "")
            elif "covered" in word:
                self.covered = {str(path): [int(n) for n in lines] for path, lines in word["covered"].items()}
            else:
                self._finished = isinstance(word["finished"], int)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ArithmeticError):
            self._garbled += 1
            self.events.append(RunEvent("garbled", _text(line[:200].decode(errors="replace"))))

    def _take_result(self, word: dict[str, Any]) -> None:
        test, result = word["test"], word["result"]
        if test not in self._wanted or result not in _REPORTED_RESULTS:
            raise ValueError("not a result that was asked for")
        if test in self._outcomes:
            self._garbled += 1
            self.events.append(RunEvent("told twice", test))
            result = "failed"
        message = _text(word["message"]) if self._step.messages else ""
        self._outcomes[test] = TestOutcome(test, result, float(word["seconds"]), message)

    def _take_event(self, word: dict[str, Any]) -> None:
        file, line = word["file"], word["line"]
        path = os.path.relpath(file, WORKSPACE) if isinstance(file, str) and file.startswith(WORKSPACE + "/") else None
        where = line if isinstance(line, int) and line > 0 and path else None
        if len(self.events) < _MOST_EVENTS:
            self.events.append(RunEvent(_text(word["event"])[:80], _text(word["detail"])[:500], path, where))


def _early_end(status: int) -> RunEvent:
    code = os.waitstatus_to_exitcode(status)
    return RunEvent("died", f"signal {-code}") if code < 0 else RunEvent("left early", f"exit code {code}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return sanitize(value[:_LONGEST], [])
