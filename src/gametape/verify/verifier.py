"""The verifier: from a workspace to a verdict.

Read the submission, run its tests and twins in sandboxes, count, score the layers, apply the rules, compute the reward.
"""

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
from gametape.verify.grader_report import GradedVerdict, grade, run_with_messages
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

    `zygotes` is a pool that several verifiers may share; without one each zygote is started when it is needed. For a
    task without a reference, `prepared` gives what the reference would have shown.
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
        self._zygotes = zygotes or self._stack.enter_context(ZygotePool())
        self._cache = verdict_cache.VerdictCache(home / "verdicts" if home and keep_verdicts else None)
        self._analyzer = StaticAnalyzer(self._home)
        self._policy = runner_policy(loaded_task.interpreter)
        self._prepared = prepared
        self._preparing = threading.Lock()

    def prepared(self) -> PreparedTask:
        """What the reference shows about the task; computed at the first call."""
        with self._preparing:
            if self._prepared is None:
                self._prepared = prepare_task(self.loaded_task, self._zygotes, self._home)
            return self._prepared

    def verify(self, workspace: Path, profile: Profile = "full", kind: RewardKind = "layered") -> Verdict:
        """The verdict on a workspace. The processes of the agent must have ended."""
        began = time.monotonic()
        submission = read_submission(self.loaded_task, workspace)
        key = verdict_cache.verdict_key(submission, self._policy.hash, profile, kind)
        if cached := self._cache.find(key):
            return cached.model_copy(update={"seconds": time.monotonic() - began})
        verdict = self._decide(submission, profile, kind, began).verdict
        self._cache.keep(key, verdict)
        return verdict

    def grade(self, workspace: Path, profile: Profile = "full", kind: RewardKind = "layered") -> GradedVerdict:
        """A verdict with what every test said, held-out ones too: for the task's author or a person who grades, never
        for a policy. It is made anew, and nothing of it is kept."""
        submission = read_submission(self.loaded_task, workspace)
        decision = self._decide(submission, profile, kind, time.monotonic())
        told = run_with_messages(self.prepared(), submission, self._zygotes)
        return grade(decision.verdict, decision.results, decision.runs, told, self.loaded_task.task.tests)

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> "Verifier":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decide(self, submission: Submission, profile: Profile, kind: RewardKind, began: float) -> "_Decision":
        prepared = self.prepared()
        with ThreadPoolExecutor(1) as thread:
            prefetched = thread.submit(self._analyzer.prefetch, submission) if profile == "full" else None
            runs = _run(prepared, submission, self._zygotes, profile)
            if prefetched:
                prefetched.result()
        tests = self.loaded_task.task.tests
        results, flaky = result_counts.worst_results(tests.every, runs.real)
        results |= dict.fromkeys(runs.twins.unrefuted, "failed")
        counts = result_counts.count_manifest(results, tests)
        feature = result_counts.count_results(results, result_counts.feature_tests(tests), tests.held_out)
        context = ScoringContext(
            submission=submission,
            runs=tuple(runs.real),
            counts=counts,
            feature=feature,
            groups=result_counts.count_groups(results, tests),
            analyzer=self._analyzer,
        )
        checks = run_layers(context, profile)
        flags = [
            *find_flags(submission, [prepared.without_reference_events(run) for run in runs.every]),
            *runs.twins.flags,
        ]
        quarantined = bool(flaky) or runs.twins.flaky
        sound = not flags and not quarantined and _structure_holds(checks)
        passed = sound and counts.all_passed
        worth = reward(kind, checks, flags, counts, self.loaded_task.task.weights, passed)
        verdict = Verdict(
            passed=passed,
            reward=min(worth, 0.0) if quarantined else worth,
            checks=checks,
            integrity=flags,
            signals=[
                *runs.twins.signals,
                *_flaky_signal(flaky, tests.held_out),
                *filter(None, [result_counts.held_out_gap(counts)]),
            ],
            quarantined=quarantined,
            stages=result_counts.stage_results(results, self.loaded_task),
            tests=counts,
            failures=result_counts.visible_failures(results, tests, runs.real[0]),
            mode=self.loaded_task.task.mode,
            assurance=_assurance(self.loaded_task.task.mode, prepared),
            seconds=time.monotonic() - began,
            cached=False,
            policy_hash=self._policy.hash,
        )
        return _Decision(verdict, results, runs.real)


@dataclass(frozen=True)
class _Decision:
    """A verdict, the results that it counted, and the runs that they come from."""

    verdict: Verdict
    results: result_counts.Results
    runs: Sequence[VerifierRun]


@dataclass(frozen=True)
class _VerdictRuns:
    """Every run of a verdict, the same runs without twins, and the judgement of the twins."""

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


def _structure_holds(checks: Sequence[Check]) -> bool:
    """A declared architecture is a condition for passing as well as a layer."""
    return all(check.score == 1.0 for check in checks if check.name == "architecture")


def _flaky_signal(flaky: Sequence[str], held_out: Sequence[str]) -> list[Signal]:
    """A signal that names the flaky tests, except held-out ones."""
    if not flaky:
        return []
    named = ", ".join(test for test in flaky if test not in set(held_out)) or "held-out ones"
    return [Signal(name="flaky", detail=f"{len(flaky)} tests passed in one run and not in another: {named}"[:500])]


def _assurance(mode: VerificationMode, prepared: PreparedTask) -> str:
    """`high`: tests and code in separate sandboxes; `medium`: in one process, checked by twins and held-out tests;
    `low`: in one process, without twins or without held-out tests."""
    if mode == "split":
        return "high"
    return "medium" if prepared.plan.validated and prepared.loaded_task.task.tests.held_out else "low"
