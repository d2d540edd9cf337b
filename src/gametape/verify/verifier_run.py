"""The results and events of one run of tests, parsed from hostile output: its texts may be shown, never trusted."""

import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from gametape.sandbox.output import sanitize
from gametape.sandbox.policy import WORKSPACE
from gametape.sandbox.result import KilledBy, PolicyViolation
from gametape.verify.in_sandbox.watched_names import REPORTED_KINDS
from gametape.verify.runner import JobReport, ProcessReport, TestProcess

TestResult = Literal["passed", "failed", "skipped", "timed_out", "missing"]
"""`failed` covers errors of set-up and collection; `skipped` covers xfail: it is not a pass either."""


@dataclass(frozen=True)
class TestOutcome:
    """The result of one test."""

    __test__ = False

    id: str
    result: TestResult
    seconds: float = 0.0
    message: str = ""


@dataclass(frozen=True)
class RunEvent:
    """Something that the process of the tests did or that happened to it, as reported from the sandbox.

    `kind` is an audit event of the interpreter (`socket.connect`, `os.kill`, `ctypes.dlopen`, `open`, ...) or one of
    ours: `patched` (a function of the runner was replaced), `rewritten` (a test file was changed during the run),
    `told twice` (two reports for one test), `left early` (the process ended by itself before its tests had), `died` (by
    a signal; if that was after it said that it had finished, nothing that it said counts), `runner ended` (a child
    ended the trusted parent), `runner tampered` (a child changed its limits or priority), `garbled` (a report that the
    runner does not write), `worker lost` (in split mode the worker no longer answers).
    """

    kind: str
    detail: str
    file: str | None = None
    """The source file that caused it, relative to the workspace."""
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
    """Lines that ran, by file, where that was requested."""

    @property
    def broke_down(self) -> bool:
        """Whether a process or the time ended early. Then later results depend on what came before."""
        ended = {"died", "left early", "runner ended", "worker lost"}
        return (
            self.killed_by is not None
            or any(event.kind in ended for event in self.events)
            or any(outcome.result == "timed_out" for outcome in self.outcomes.values())
        )

    def result(self, test: str) -> TestResult:
        outcome = self.outcomes.get(test)
        return outcome.result if outcome else "missing"


def join_runs(runs: Sequence[VerifierRun]) -> VerifierRun:
    """What the processes of several runs did, without results; there is at least one run."""
    return VerifierRun(
        outcomes={},
        events=tuple(dict.fromkeys(event for run in runs for event in run.events)),
        violations=tuple(violation for run in runs for violation in run.violations),
        killed_by=next((run.killed_by for run in runs if run.killed_by), None),
        seconds=sum(run.seconds for run in runs),
        order=runs[-1].order,
    )


_REPORTED_RESULTS = frozenset(get_args(TestResult)) - {"missing"}
_MOST_OF_A_KIND = 100
_MOST_GARBLED = 40
_LONGEST = 6000


def parse_report(report: JobReport, processes: Iterable[TestProcess], order: str = "as written") -> VerifierRun:
    """The results of these processes of a job, and every event."""
    outcomes: dict[str, TestOutcome] = {}
    events: list[RunEvent] = []
    covered: dict[str, set[int]] = {}
    for process in processes:
        parsed = _OutputParser(process, report.processes[process.name])
        outcomes.update(parsed.results(report.timed_out))
        events += parsed.events
        for path, lines in parsed.covered.items():
            covered.setdefault(path, set()).update(lines)
    killed_by = "time" if report.timed_out else report.sandbox.killed_by
    if not report.done and killed_by is None:
        last = report.sandbox.stderr.strip().rpartition("\n")[2]
        how = f"signal {report.sandbox.signal}" if report.sandbox.signal else f"exit code {report.sandbox.exit_code}"
        events.append(RunEvent("runner ended", f"{how} {last}".strip()))
    return VerifierRun(
        outcomes=outcomes,
        events=_limit_events(events),
        violations=report.sandbox.violations,
        killed_by=killed_by,
        seconds=report.seconds,
        order=order,
        covered={path: frozenset(lines) for path, lines in covered.items()},
    )


class _OutputParser:
    """Reads the output of one process: a JSON document per line, checked one by one."""

    def __init__(self, process: TestProcess, report: ProcessReport) -> None:
        self._process = process
        self._report = report
        self._outcomes: dict[str, TestOutcome] = {}
        self._collection_error: str | None = None
        self._finished = False
        self._garbled = 0
        self._counts = Counter[str]()
        self.events: list[RunEvent] = []
        self.covered: dict[str, list[int]] = {}
        for line in io.BytesIO(report.output):
            self._parse_line(line)
            if self._garbled > _MOST_GARBLED:
                break
        self.events += [RunEvent("rewritten", path) for path in report.changed_files]
        if report.tampered:
            self.events.append(RunEvent("runner tampered", report.tampered))
        if report.status is not None and not report.timed_out and (not self._finished or report.status != 0):
            self.events.append(_early_end(report.status))
            if self._finished:  # it ended elsewhere than the runner does: somebody else has spoken
                self.events.append(RunEvent("garbled", "the end was reported, and the process ended otherwise"))
                self._outcomes.clear()

    def results(self, timed_out: bool) -> dict[str, TestOutcome]:
        """A result for every wanted test, whether or not the process reported one."""
        timed_out = self._report.timed_out or (timed_out and self._report.status is None)
        unreported: TestResult = (
            "failed" if self._collection_error is not None else "timed_out" if timed_out else "missing"
        )
        return {
            test: self._outcomes.get(test) or TestOutcome(test, unreported, message=self._collection_error or "")
            for test in self._process.tests
        }

    def _parse_line(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            if not isinstance(message, dict) or self._finished:
                raise ValueError("out of turn")
            if "test" in message:
                self._parse_result(message)
            elif "event" in message:
                self._parse_event(message)
            elif "broken" in message:
                self._collection_error = (self._collection_error or "") + (
                    _text(message["message"]) if self._process.messages else ""
                )
            elif "covered" in message:
                self.covered = {str(path): [int(n) for n in lines] for path, lines in message["covered"].items()}
            else:
                self._finished = isinstance(message["finished"], int)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ArithmeticError):
            self._garbled += 1
            self.events.append(RunEvent("garbled", _text(line[:200].decode(errors="replace"))))

    def _parse_result(self, message: dict[str, Any]) -> None:
        test, result = self._process.ids_inside.get(message["test"]), message["result"]
        if test is None or result not in _REPORTED_RESULTS:
            raise ValueError("not a result that was asked for")
        if test in self._outcomes:
            self._garbled += 1
            self.events.append(RunEvent("told twice", test))
            result = "failed"
        text = _text(message["message"]) if self._process.messages else ""
        self._outcomes[test] = TestOutcome(test, result, float(message["seconds"]), text)

    def _parse_event(self, message: dict[str, Any]) -> None:
        file, line = message["file"], message["line"]
        path = os.path.relpath(file, WORKSPACE) if isinstance(file, str) and file.startswith(WORKSPACE + "/") else None
        line_number = line if isinstance(line, int) and line > 0 and path else None
        kind = message["event"]
        if kind not in REPORTED_KINDS:
            raise ValueError("not an event that is reported")
        self._counts[kind] += 1
        if self._counts[kind] <= _MOST_OF_A_KIND:
            self.events.append(RunEvent(kind, _text(message["detail"])[:500], path, line_number))


def _limit_events(events: Iterable[RunEvent]) -> tuple[RunEvent, ...]:
    """The first events of each kind: one kind cannot crowd out another."""
    counts = Counter[str]()
    kept = []
    for event in dict.fromkeys(events):
        counts[event.kind] += 1
        if counts[event.kind] <= _MOST_OF_A_KIND:
            kept.append(event)
    return tuple(kept)


def _early_end(status: int) -> RunEvent:
    code = os.waitstatus_to_exitcode(status)
    return RunEvent("died", f"signal {-code}") if code < 0 else RunEvent("left early", f"exit code {code}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return sanitize(value[:_LONGEST], [])
