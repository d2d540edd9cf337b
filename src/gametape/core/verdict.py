"""The verifier's verdict on a workspace. It becomes a training signal, so it is checked for contradictions."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gametape.core.base_model import Count, Fraction, StrictModel
from gametape.core.validation import Fault, raise_faults

VerificationMode = Literal["replay", "split", "shared"]
"""How tests decide. `replay`: their recorded calls are sent to the code and the answers compared outside. `split`: the
tests run in one sandbox, the code in another. `shared`: tests and code run in one process."""

AssuranceLevel = Literal["high", "medium", "low"]
"""How much a verdict excludes. `high`: no expected value was near the code that was judged. `medium`: tests and code
shared a process, and contradictions would have shown forged results. `low`: they shared it without such a check."""


class Check(StrictModel):
    """One layer of the reward: its score, and the evidence."""

    name: str
    score: Fraction
    detail: str


class Flag(StrictModel):
    """A broken rule over code or events, and where it was broken."""

    rule: str
    severity: Literal["suspect", "proven"]
    file: str | None = None
    line: Annotated[int, Field(ge=1)] | None = None
    step: Annotated[int, Field(ge=1)] | None = None
    evidence: str


class Signal(StrictModel):
    """An observation without a penalty: a gap to the held-out tests, order dependence, flakiness."""

    name: str
    detail: str


class TestCounts(StrictModel):
    """The results of the manifest's tests. `expected` counts them all."""

    __test__ = False

    expected: Count
    passed: Count
    failed: Count = 0
    missing: Count = 0
    skipped: Count = 0
    timed_out: Count = 0
    held_out_expected: Count = 0
    held_out_passed: Count = 0

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        if self.passed > self.expected:
            raise_faults([(("passed",), f"at most the {self.expected} tests expected")])
        if self.held_out_passed > self.held_out_expected:
            raise_faults([(("held_out_passed",), f"at most the {self.held_out_expected} tests expected")])
        return self

    @property
    def all_passed(self) -> bool:
        return self.passed == self.expected and self.held_out_passed == self.held_out_expected


class FreshCalls(StrictModel):
    """Calls on inputs that no test has, drawn for one verdict, and how many of them were answered as the reference
    answers them."""

    calls: Count
    agreed: Count

    @model_validator(mode="after")
    def _check_calls(self) -> Self:
        if self.agreed > self.calls:
            raise_faults([(("agreed",), f"at most the {self.calls} calls made")])
        return self


class FailedTest(StrictModel):
    """A visible test that did not pass, and the runner's message, which hostile code may have written."""

    test: str
    result: Literal["failed", "skipped", "timed_out", "missing"]
    message: str


class StageResult(StrictModel):
    """The result of one stage of a task."""

    name: str
    passed: bool
    tests: TestCounts


class Verdict(StrictModel):
    """The verdict on one workspace.

    A pass means that every test passed, that enough fresh calls were answered as the reference answers them, that no
    flag is proven, and that a second run agreed. A `proven` flag makes the reward exactly -1.0.
    """

    schema_version: Literal["verdict-v1"] = "verdict-v1"
    passed: bool
    reward: Annotated[float, Field(ge=-1, le=1)]
    checks: list[Check]
    integrity: list[Flag]
    signals: list[Signal]
    quarantined: bool
    stages: list[StageResult]
    tests: TestCounts
    failures: list[FailedTest] = Field(default_factory=list)
    """The first visible tests that did not pass. Held-out ones are never here."""
    fresh: FreshCalls | None = None
    """None where the task has no calls that can be varied."""
    mode: VerificationMode
    assurance: str
    """`high`, `medium` or `low`; an `AssuranceLevel` in verdicts of this version."""
    assurance_detail: str = ""
    """What was excluded and what was not, in words."""
    seconds: Annotated[float, Field(ge=0)]
    cached: bool
    policy_hash: str

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        faults = [*self._contradictions()]
        if faults:
            raise_faults(faults)
        return self

    def _contradictions(self) -> Iterator[Fault]:
        if self.proven and self.reward != -1.0:
            yield ("reward",), "exactly -1.0, for a flag is proven"
        if self.passed and self.proven:
            yield ("passed",), "false, for a flag is proven"
        if self.passed and self.quarantined:
            yield ("passed",), "false, for the verdict is quarantined"
        if self.passed and not self.tests.all_passed:
            yield ("passed",), "false, for not every test passed"

    @property
    def proven(self) -> bool:
        return any(flag.severity == "proven" for flag in self.integrity)
