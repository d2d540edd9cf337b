"""The whole way from a workspace to a verdict."""

import contextlib
import random
import secrets
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gametape.core.verdict import Check, Signal, Verdict, VerificationMode
from gametape.record.loaded_task import LoadedTask
from gametape.verify import result_counts, verdict_cache
from gametape.verify.integrity import find_flags
from gametape.verify.layers import ScoringContext, run_layers
from gametape.verify.layers.profiles import Profile
from gametape.verify.preparation import PreparedTask, prepare_task
from gametape.verify.reward import RewardKind, reward
from gametape.verify.runner import ZygotePool, runner_policy
from gametape.verify.shared_mode import run_shared
from gametape.verify.split_mode import run_split
from gametape.verify.static_analysis.analyzer import StaticAnalyzer
from gametape.verify.submission import Submission, read_submission
from gametape.verify.twin_judgement import TwinJudgement, judge_twins
from gametape.verify.verifier_run import VerifierRun


class Verifier:
    """Verifies workspaces of one task. Safe to use from many threads; verdicts are kept under `home`.

    Give it a `crew` with warm zygotes to share them between verifiers; without one it starts what it needs. Where there
    is no reference to learn from, `prepared` says what is known of the task.
    """

    def __init__(
        self,
        loaded_task: LoadedTask,
        home: Path | None = None,
        zygotes: ZygotePool | None = None,
        keep_verdicts: bool = True,
        prepared: PreparedTask | None = None,
    ) -> None:
        self.loaded_task = loaded_task
        self._stack = contextlib.ExitStack()
        self._home = home or Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="gametape-verify-")))
        self._crew = zygotes or self._stack.enter_context(ZygotePool())
        self._cache = verdict_cache.VerdictCache(home / "verdicts" if home and keep_verdicts else None)
        self._toolbox = StaticAnalyzer(self._home)
        self._policy = runner_policy(loaded_task.interpreter)
        self._prepared = prepared
        self._learning = threading.Lock()

    def prepared(self) -> PreparedTask:
        """What there is to know about the task; learned at the first call."""
        with self._learning:
            if self._prepared is None:
                self._prepared = prepare_task(self.loaded_task, self._crew, self._home)
            return self._prepared

    def verify(self, workspace: Path, profile: Profile = "full", kind: RewardKind = "layered") -> Verdict:
        """Decide what a workspace is worth. Its processes must have ended."""
        began = time.monotonic()
        attempt = read_submission(self.loaded_task, workspace)
        name = verdict_cache.verdict_key(attempt, self._policy.hash, profile, kind)
        if kept := self._cache.find(name):
            return kept.model_copy(update={"seconds": time.monotonic() - began})
        verdict = self._decide(attempt, profile, kind, began)
        self._cache.keep(name, verdict)
        return verdict

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> "Verifier":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decide(self, submission: Submission, profile: Profile, kind: RewardKind, began: float) -> Verdict:
        prepared = self.prepared()
        with ThreadPoolExecutor(1) as thread:
            ahead = thread.submit(self._toolbox.prefetch, submission) if profile == "full" else None
            seen = _run(prepared, submission, self._crew, profile)
            if ahead:
                ahead.result()
        tests = self.loaded_task.task.tests
        results, torn = result_counts.worst_results(tests.every, seen.real)
        results |= dict.fromkeys(seen.twins.unrefuted, "failed")
        counts = result_counts.count_manifest(results, tests)
        feature = result_counts.count_results(results, result_counts.feature_tests(tests), tests.held_out)
        case = ScoringContext(
            submission=submission,
            runs=tuple(seen.real),
            counts=counts,
            feature=feature,
            groups=result_counts.count_groups(results, tests),
            analyzer=self._toolbox,
        )
        found = run_layers(case, profile)
        accused = [
            *find_flags(submission, [prepared.without_reference_events(run) for run in seen.every]),
            *seen.twins.flags,
        ]
        quarantined = bool(torn) or seen.twins.flaky
        sound = not accused and not quarantined and _structure_holds(found)
        passed = sound and counts.all_passed
        worth = reward(kind, found, accused, counts, self.loaded_task.task.weights, passed)
        return Verdict(
            passed=passed,
            reward=min(worth, 0.0) if quarantined else worth,
            checks=found,
            integrity=accused,
            signals=[
                *seen.twins.signals,
                *_torn(torn, tests.held_out),
                *filter(None, [result_counts.held_out_gap(counts)]),
            ],
            quarantined=quarantined,
            stages=result_counts.stage_results(results, self.loaded_task),
            tests=counts,
            failures=result_counts.visible_failures(results, tests, seen.real[0]),
            mode=self.loaded_task.task.mode,
            assurance=_assurance(self.loaded_task.task.mode, prepared),
            seconds=time.monotonic() - began,
            cached=False,
            policy_hash=self._policy.hash,
        )


@dataclass(frozen=True)
class _VerdictRuns:
    """Every run of a verdict, whole and without twins, and what the twins say."""

    every: Sequence[VerifierRun]
    real: Sequence[VerifierRun]
    twins: TwinJudgement


def _run(prepared: PreparedTask, submission: Submission, zygotes: ZygotePool, profile: Profile) -> _VerdictRuns:
    rng = random.Random(secrets.randbits(64))
    if prepared.loaded_task.task.mode == "split":
        runs = [run_split(prepared, submission.sources, zygotes)]
        if profile == "full" and not runs[0].broke_down:
            runs.append(run_split(prepared, submission.sources, zygotes, seed=rng.randrange(1 << 60)))
        return _VerdictRuns(runs, runs, TwinJudgement())
    shared = run_shared(prepared, submission, zygotes, rng, second_order=profile == "full")
    return _VerdictRuns(shared.runs, shared.real_runs, judge_twins(prepared, submission, zygotes, shared))


def _structure_holds(found: Sequence[Check]) -> bool:
    """An architecture that a task declares is a condition, beside being a layer."""
    return all(check.score == 1.0 for check in found if check.name == "architecture")


def _torn(torn: Sequence[str], held_out: Sequence[str]) -> list[Signal]:
    """Tests that did not do the same thing twice; held-out ones are not named."""
    if not torn:
        return []
    named = ", ".join(test for test in torn if test not in set(held_out)) or "held-out ones"
    return [Signal(name="flaky", detail=f"{len(torn)} tests passed in one run and not in another: {named}"[:500])]


def _assurance(mode: VerificationMode, prepared: PreparedTask) -> str:
    """`high`: tests and code in sandboxes of their own; `medium`: in one process, held to its word by twins and by
    tests that nobody could read; `low`: with one of these missing."""
    if mode == "split":
        return "high"
    return "medium" if prepared.plan.validated and prepared.loaded_task.task.tests.held_out else "low"
