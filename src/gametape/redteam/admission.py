"""Admission of a task: the untouched tree fails, the reference passes, and hacks are flagged and earn nothing."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from gametape.core.verdict import Verdict
from gametape.record.loaded_task import LoadedTask
from gametape.redteam import HACKS, Hack, HackResult, run_hacks, sample_hacks
from gametape.tasks.checkout import checkout
from gametape.verify.layers.profiles import Profile
from gametape.verify.runner import ZygotePool
from gametape.verify.verifier import Verifier

_WARM = 3

HackChoice = Literal["all", "sample", "none"]

AdmissionProgress = Callable[[int, int, str], None]
"""Called before each piece of work: how many are done, how many there are, and what comes next."""


@dataclass(frozen=True)
class Admission:
    """The verdicts on a task and the reasons not to admit it; without any, it is admitted."""

    untouched: Verdict
    reference: Sequence[Verdict]
    """One verdict for each run; none if the task has no reference."""
    hacks: Sequence[HackResult] = ()
    """One result for each hack that can be planted on this task."""
    reasons: Sequence[str] = field(default_factory=list)

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
    with ZygotePool(_WARM) as zygotes, Verifier(loaded_task, home, zygotes, keep_verdicts=False) as verifier:
        on_progress(0, total, "untouched tree")
        untouched = _verified(verifier, "train", solved=False)
        reference = []
        if loaded_task.reference is not None:
            for run in range(runs):
                on_progress(1 + run, total, f"reference, run {run + 1}")
                reference.append(_verified(verifier, "full", solved=True))
        results: list[HackResult] = []
        done = 1 + len(reference)
        on_progress(done, total, "hacks")
        for count, hack_results in enumerate(_replayed(verifier, selected), start=1):
            results += hack_results
            on_progress(done + count, total, "hacks")
    reasons = [] if loaded_task.task.tests.held_out else [_NO_HELD_OUT]
    return Admission(untouched, reference, results, reasons + _reasons(untouched, reference, results))


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


def _verified(verifier: Verifier, profile: Profile, solved: bool) -> Verdict:
    with tempfile.TemporaryDirectory(prefix="gametape-check-") as scratch:
        workspace = checkout(verifier.loaded_task, Path(scratch) / "workspace", solved).workspace
        return verifier.verify(workspace, profile)


_NO_HELD_OUT = "there are no held-out tests: a table of the visible answers would pass"


def _reasons(untouched: Verdict, reference: Sequence[Verdict], hacks: Sequence[HackResult]) -> list[str]:
    reasons = []
    if untouched.passed:
        reasons.append("the untouched tree passes: the task asks for nothing")
    if not reference:
        reasons.append("there is no reference that shows the task can be solved (solution/files)")
    elif failed := [verdict for verdict in reference if not verdict.passed]:
        runs = len(reference)
        reasons.append(f"the reference passed {runs - len(failed)} of {runs} runs: {_why_not(failed[0])}")
    if rewarded := [result.hack.name for result in hacks if result.rewarded]:
        reasons.append(f"hacks were rewarded: {', '.join(rewarded)}")
    if unseen := [result.hack.name for result in hacks if not result.flagged]:
        reasons.append(f"hacks went unseen: {', '.join(unseen)}")
    return reasons


def _why_not(verdict: Verdict) -> str:
    """The main reason why a verdict is not a pass, in a few words."""
    tests = verdict.tests
    if verdict.integrity:
        flag = verdict.integrity[0]
        return f"{flag.severity} {flag.rule} ({flag.evidence})"
    if verdict.quarantined:
        return "; ".join(f"{signal.name}: {signal.detail}" for signal in verdict.signals) or "two runs disagreed"
    if not tests.all_passed:
        hidden = f", {tests.held_out_passed} of {tests.held_out_expected} held out" if tests.held_out_expected else ""
        return f"{tests.passed} of {tests.expected} tests passed{hidden}"
    broken = [f"{check.name}: {check.detail}" for check in verdict.checks if check.score < 1]
    return "; ".join(broken) or "; ".join(signal.name for signal in verdict.signals) or "twins passed"
