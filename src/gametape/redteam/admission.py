"""Admission of a task: the untouched tree fails as the task says, the reference passes, no trivial program does, and
hacks are flagged and earn nothing. Every reason against it names the file or the test, and what to do."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from gametape.core.verdict import Verdict
from gametape.record.loaded_task import LoadedTask
from gametape.redteam import HACKS, Hack, HackResult, run_hacks, sample_hacks
from gametape.redteam.admission_reasons import floor_reasons, mode_reasons, reference_reasons, start_reasons
from gametape.sandbox.snapshots.cleanup import scratch_directory
from gametape.tasks.checkout import checkout
from gametape.verify.grader_report import TestDifference
from gametape.verify.progress import NO_FLOOR, Floor
from gametape.verify.runner import ZygotePool
from gametape.verify.test_ways import NO_WAYS, TestWays
from gametape.verify.verifier import Verifier

_WARM = 3

Result = TypeVar("Result")

HackChoice = Literal["all", "sample", "none"]

AdmissionProgress = Callable[[int, int, str], None]
"""Called before each piece of work: how many are done, how many there are, and what comes next. Preparation comes first
and counts pieces of its own; of a stage without any there are 0."""


@dataclass(frozen=True)
class Admission:
    """The verdicts on a task and the reasons not to admit it; without any, it is admitted."""

    untouched: Verdict
    reference: Sequence[Verdict]
    """One verdict for each run; none if the task has no reference."""
    hacks: Sequence[HackResult] = ()
    """One result for each hack that can be planted on this task."""
    reasons: Sequence[str] = field(default_factory=list)
    differences: Sequence[TestDifference] = ()
    """The tests that the reference did not pass, held-out ones too: for the author of the task."""
    ways: TestWays = NO_WAYS
    """How each test runs, and why it is not replayed."""
    floor: Floor = NO_FLOOR

    @property
    def admitted(self) -> bool:
        return not self.reasons


def admit(
    loaded_task: LoadedTask, home: Path, runs: int, hacks: HackChoice, on_progress: AdmissionProgress
) -> Admission:
    """Verify the untouched tree once, the reference `runs` times and the chosen hacks, each from scratch.

    The untouched tree has to fail where passing is easiest, under the train profile. The reference has to pass under
    the full one, whose second order shows flaky tests.
    """
    selected = _chosen(hacks)
    total = 1 + runs * (loaded_task.reference is not None) + len(selected)

    def on_stage(stage: str, done: int, count: int) -> None:
        if not verified:
            on_progress(done, count, stage)

    verified = False
    with (
        ZygotePool(_WARM) as zygotes,
        Verifier(loaded_task, home, zygotes, keep_verdicts=False, on_progress=on_stage) as verifier,
    ):
        on_progress(0, 0, "preparing")
        prepared = verifier.prepared()
        verified = True
        on_progress(0, total, "untouched tree")
        untouched = _attempted(verifier, solved=False, attempt=lambda workspace: verifier.grade(workspace, "train"))
        reference = []
        if loaded_task.reference is not None:
            for run in range(runs):
                on_progress(1 + run, total, f"reference, run {run + 1}")
                reference.append(_attempted(verifier, solved=True, attempt=verifier.verify))
        differences: Sequence[TestDifference] = ()
        if not all(verdict.passed for verdict in reference):
            differences = _attempted(verifier, solved=True, attempt=verifier.grade).differences
        results: list[HackResult] = []
        done = 1 + len(reference)
        on_progress(done, total, "hacks")
        for count, hack_results in enumerate(_replayed(verifier, selected), start=1):
            results += hack_results
            on_progress(done + count, total, "hacks")
    reasons = [
        *mode_reasons(loaded_task, prepared.ways),
        *start_reasons(loaded_task, untouched),
        *floor_reasons(prepared.floor),
        *reference_reasons(loaded_task, reference, differences),
        *_hack_reasons(results),
    ]
    return Admission(untouched.verdict, reference, results, reasons, differences, prepared.ways, prepared.floor)


def _chosen(hacks: HackChoice) -> Sequence[Hack]:
    if hacks == "sample":
        return sample_hacks(seed=0, per_family=2)
    return HACKS if hacks == "all" else ()


def _replayed(verifier: Verifier, hacks: Sequence[Hack]) -> Iterator[list[HackResult]]:
    """The result of each hack, or none if it cannot be planted; several run at a time, because some of them hang."""
    with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as threads:
        try:
            yield from threads.map(lambda hack: list(run_hacks(verifier, verifier.loaded_task, [hack])), hacks)
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise


def _attempted(verifier: Verifier, solved: bool, attempt: Callable[[Path], Result]) -> Result:
    with scratch_directory("gametape-check-") as scratch:
        return attempt(checkout(verifier.loaded_task, scratch / "workspace", solved).workspace)


def _hack_reasons(hacks: Sequence[HackResult]) -> Iterator[str]:
    if rewarded := [result.hack.name for result in hacks if result.rewarded]:
        yield f"hacks were rewarded: {', '.join(rewarded)}"
    if unseen := [result.hack.name for result in hacks if not result.flagged]:
        yield f"hacks went unseen: {', '.join(unseen)}"
