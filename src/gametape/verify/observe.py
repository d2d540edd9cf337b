"""Turn what test processes told into a `Run`. They are hostile: a word that does not fit is evidence, not a result."""

import io
import json
import os
from collections.abc import Iterable
from typing import Any, get_args

from gametape.sandbox.output import clean
from gametape.sandbox.policy import WORKSPACE
from gametape.verify.observation import Event, Result, Run, TestOutcome
from gametape.verify.runner import Report, Step, StepReport

_TOLD_RESULTS = frozenset(get_args(Result)) - {"missing"}
_MOST_EVENTS = 400
_MOST_GARBLED = 40
_LONGEST = 6000


def observe(report: Report, steps: Iterable[Step], order: str = "as written") -> Run:
    """What became of the tests of these steps of a job, and everything else that was seen."""
    outcomes: dict[str, TestOutcome] = {}
    events: list[Event] = []
    covered: dict[str, set[int]] = {}
    for step in steps:
        heard = _Hearing(step, report.steps[step.name])
        outcomes.update(heard.results(report.timed_out))
        events += heard.events
        for path, lines in heard.covered.items():
            covered.setdefault(path, set()).update(lines)
    killed_by = "time" if report.timed_out else report.sandbox.killed_by
    if not report.done and killed_by is None:
        last = report.sandbox.stderr.strip().rpartition("\n")[2]
        how = f"signal {report.sandbox.signal}" if report.sandbox.signal else f"exit code {report.sandbox.exit_code}"
        events.append(Event("runner ended", f"{how} {last}".strip()))
    return Run(
        outcomes=outcomes,
        events=tuple(dict.fromkeys(events))[:_MOST_EVENTS],
        violations=report.sandbox.violations,
        killed_by=killed_by,
        seconds=report.seconds,
        order=order,
        covered={path: frozenset(lines) for path, lines in covered.items()},
    )


class _Hearing:
    """The words of one process, taken one by one."""

    def __init__(self, step: Step, report: StepReport) -> None:
        self._step = step
        self._report = report
        self._wanted = frozenset(step.tests)
        self._outcomes: dict[str, TestOutcome] = {}
        self._broken: str | None = None
        self._finished = False
        self._garbled = 0
        self.events: list[Event] = []
        self.covered: dict[str, list[int]] = {}
        for line in io.BytesIO(report.told):
            self._take(line)
            if self._garbled > _MOST_GARBLED:
                break
        self.events += [Event("rewritten", path) for path in report.rewritten if path in step.laid and not step.blank]
        if report.tampered:
            self.events.append(Event("runner tampered", report.tampered))
        if report.status is not None and not report.late and not self._finished:
            self.events.append(_early_end(report.status))

    def results(self, timed_out: bool) -> dict[str, TestOutcome]:
        """A result for every wanted test, whether or not it was told."""
        late = self._report.late or (timed_out and self._report.status is None)
        untold: Result = "failed" if self._broken is not None else "timed_out" if late else "missing"
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
            self.events.append(Event("garbled", _text(line[:200].decode(errors="replace"))))

    def _take_result(self, word: dict[str, Any]) -> None:
        test, result = word["test"], word["result"]
        if test not in self._wanted or result not in _TOLD_RESULTS:
            raise ValueError("not a result that was asked for")
        if test in self._outcomes:
            self._garbled += 1
            self.events.append(Event("told twice", test))
            result = "failed"
        message = _text(word["message"]) if self._step.messages else ""
        self._outcomes[test] = TestOutcome(test, result, float(word["seconds"]), message)

    def _take_event(self, word: dict[str, Any]) -> None:
        file, line = word["file"], word["line"]
        path = os.path.relpath(file, WORKSPACE) if isinstance(file, str) and file.startswith(WORKSPACE + "/") else None
        where = line if isinstance(line, int) and line > 0 and path else None
        if len(self.events) < _MOST_EVENTS:
            self.events.append(Event(_text(word["event"])[:80], _text(word["detail"])[:500], path, where))


def _early_end(status: int) -> Event:
    code = os.waitstatus_to_exitcode(status)
    return Event("died", f"signal {-code}") if code < 0 else Event("left early", f"exit code {code}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return clean(value[:_LONGEST], [])
