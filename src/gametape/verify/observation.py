"""What was seen of one run of tests. The texts in it were written by hostile code: show them, never believe them."""

from dataclasses import dataclass, field
from typing import Literal

from gametape.sandbox.result import KilledBy, Violation

Result = Literal["passed", "failed", "skipped", "timed_out", "missing"]
"""`failed` covers errors of set-up and collection; `skipped` covers xfail: it is not a pass either."""


@dataclass(frozen=True)
class TestOutcome:
    """What became of one test."""

    __test__ = False

    id: str
    result: Result
    seconds: float = 0.0
    message: str = ""


@dataclass(frozen=True)
class Event:
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
class Run:
    """One pass over a suite in one sandbox."""

    outcomes: dict[str, TestOutcome]
    events: tuple[Event, ...] = ()
    violations: tuple[Violation, ...] = ()
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

    def result(self, test: str) -> Result:
        found = self.outcomes.get(test)
        return found.result if found else "missing"
