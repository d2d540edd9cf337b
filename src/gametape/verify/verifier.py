"""The verifier: from a workspace to a verdict.

Read the submission, run its tests in their ways, count, make fresh calls, score the layers, apply the rules, compute
the reward.
"""

import contextlib
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gametape.core.verdict import Check, FreshCalls, Signal, Verdict
from gametape.record.loaded_task import LoadedTask
from gametape.record.lock import locked
from gametape.record.source_tree import SourceTree
from gametape.verify import result_counts, verdict_cache
from gametape.verify.assurance import assurance_level, describe_assurance
from gametape.verify.fresh.bundles import FreshCall
from gametape.verify.fresh.judge import FreshJudge, FreshResult
from gametape.verify.fresh.stored_calls import StoredCalls
from gametape.verify.grader_report import GradedVerdict, grade
from gametape.verify.integrity import find_flags
from gametape.verify.layers import ScoringContext, run_layers
from gametape.verify.layers.profiles import Profile
from gametape.verify.machine_load import LoadAllowance
from gametape.verify.preparation import PreparedTask, preparation_path, prepare_task
from gametape.verify.progress import LEAST_FRESH_CALLS, agrees_enough, fresh_gap
from gametape.verify.replay.recording import Recording, record_tests
from gametape.verify.replay.replayer import Replayer
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.replay.self_comparison import count_self_compared
from gametape.verify.reward import RewardKind, reward
from gametape.verify.runner import ZygotePool, runner_policy
from gametape.verify.stage_progress import StageProgress, ignore_progress
from gametape.verify.static_analysis.analyzer import StaticAnalyzer
from gametape.verify.submission import Submission, read_submission
from gametape.verify.verdict_runs import VerdictRuns, run_tests
from gametape.verify.verifier_run import VerifierRun

_FRESH_STAGE = "making fresh calls"
_MOST_WAITED = 12.0
"""So many seconds of a verdict may hanging code wait for the other work of a busy machine."""
_Hung = Literal["nowhere", "somewhere", "everywhere"]
"""Where an attempt did not come back: in no test of the feature, in some while others passed, or while none did."""
_UNASKED = Signal(name="no fresh calls", detail="the reference did not answer in time: verify once more")
_NOTHING_ASKED = Signal(name="nothing asked", detail="a trivial program passes this task, so it pays nobody")


class Verifier:
    """Verifies workspaces of one task. Safe to use from many threads; verdicts are kept under `home`.

    `zygotes` and `sandboxes` are pools that several verifiers may share; without a pool each zygote is started when it
    is needed. For a task without a reference, `prepared` gives what the reference would have shown. `on_progress` hears
    of the stages of preparation, which take longest. Of all verifiers of a task with this home one prepares it, in
    whatever process; the others wait, and read what it found.
    """

    def __init__(
        self,
        loaded_task: LoadedTask,
        home: Path | None = None,
        zygotes: ZygotePool | None = None,
        keep_verdicts: bool = True,
        prepared: PreparedTask | None = None,
        on_progress: StageProgress = ignore_progress,
        sandboxes: ReplaySandboxes | None = None,
    ) -> None:
        self._on_progress = on_progress
        self.loaded_task = loaded_task
        self._stack = contextlib.ExitStack()
        self._home = home or Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="gametape-verify-")))
        self._zygotes = zygotes or self._stack.enter_context(ZygotePool())
        self._cache = verdict_cache.VerdictCache(home / "verdicts" if home and keep_verdicts else None)
        self._analyzer = StaticAnalyzer(self._home)
        self._policy = runner_policy(loaded_task.interpreter)
        self._prepared = prepared
        self._preparing = threading.Lock()
        self._sandboxes = sandboxes or self._stack.enter_context(ReplaySandboxes())
        self._stored_calls = StoredCalls(home, loaded_task) if home else None
        self._fresh: FreshJudge | None = None
        self._compared: int | None = None

    def prepared(self) -> PreparedTask:
        """What the reference shows about the task; computed at the first call."""
        with self._preparing:
            if self._prepared is None:
                self._prepared = self._prepare()
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
        return grade(
            decision.verdict,
            decision.results,
            decision.runs,
            decision.fresh,
            self.prepared(),
            submission,
            self._zygotes,
        )

    def close(self) -> None:
        self._stack.close()

    def __enter__(self) -> "Verifier":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(self) -> PreparedTask:
        task = self.loaded_task
        with locked(preparation_path(self._home, task, ".lock")):
            return self._prepare_alone(task)

    def _prepare_alone(self, task: LoadedTask) -> PreparedTask:
        recording = None
        if task.task.mode != "shared" and task.reference is not None:
            recording = record_tests(task, self._zygotes, self._sandboxes, self._home, self._on_progress)
            self._fresh = self._open_fresh(recording)
        return prepare_task(
            task,
            recording,
            self._zygotes,
            self._sandboxes,
            self._count_fresh,
            self._fresh_calls,
            self._home,
            self._on_progress,
        )

    def _open_fresh(self, recording: Recording) -> FreshJudge:
        transcripts = [*recording.transcripts.values()]
        judge = FreshJudge(transcripts, self.loaded_task, self._sandboxes, stored=self._stored_calls)
        return self._stack.enter_context(judge)

    def _count_fresh(self) -> int:
        if self._fresh is None:
            return 0
        self._on_progress(_FRESH_STAGE, 0, 0)
        return self._fresh.ready()

    def _draw_fresh(self, prepared: PreparedTask) -> "_FreshQuestions | None":
        """Fresh calls for an attempt; None where none can be made.

        On a busy machine the reference may have been too slow to answer: where there were enough calls before, they are
        made once more from the beginning.
        """
        judge = self._fresh
        if judge is None:
            return None
        if not judge.is_ready:
            self._on_progress(_FRESH_STAGE, 0, 0)
        calls = judge.draw()
        if len(calls) < LEAST_FRESH_CALLS <= prepared.fresh_calls and prepared.recording:
            with self._preparing:
                self._fresh = judge = self._open_fresh(prepared.recording)
            calls = judge.draw()
        return _FreshQuestions(judge, calls) if calls else None

    def _self_compared(self, prepared: PreparedTask) -> int:
        """How many tests of the feature only ask the code about its own objects; counted once."""
        if self._compared is None:
            transcripts = prepared.recording.transcripts.values() if prepared.recording else ()
            tests = self.loaded_task.task.tests
            self._compared = count_self_compared(transcripts, set(result_counts.feature_tests(tests) or tests.every))
        return self._compared

    def _fresh_calls(self, sources: SourceTree) -> FreshCalls | None:
        result = self._fresh.judge(sources) if self._fresh else None
        return FreshCalls(calls=result.calls, agreed=result.agreed) if result and result.calls else None

    def _hung(self, results: result_counts.Results) -> "_Hung":
        """Where the tests of the feature found that an attempt does not come back."""
        tests = self.loaded_task.task.tests
        of_feature = [results[test] for test in result_counts.feature_tests(tests) or tests.every]
        if "timed_out" not in of_feature:
            return "nowhere"
        return "somewhere" if "passed" in of_feature else "everywhere"

    def _decide(self, submission: Submission, profile: Profile, kind: RewardKind, began: float) -> "_Decision":
        prepared = self.prepared()
        task = self.loaded_task.task
        questions, allowance = self._draw_fresh(prepared), LoadAllowance(_MOST_WAITED)
        with ThreadPoolExecutor(1) as thread:
            prefetched = thread.submit(self._analyzer.prefetch, submission) if profile == "full" else None
            within = questions.ask_within if questions else None
            runs = run_tests(prepared, submission, self._zygotes, self._sandboxes, profile, within, allowance)
            if prefetched:
                prefetched.result()
        results, flaky = result_counts.worst_results(task.tests.every, runs.real)
        results |= dict.fromkeys(runs.twins.unrefuted, "failed")
        judged = questions.result(submission.sources, self._hung(results), allowance) if questions else None
        fresh = FreshCalls(calls=judged.calls, agreed=judged.agreed) if judged else None
        context = _scoring_context(prepared, submission, runs, results, fresh, self._analyzer)
        checks = run_layers(context, profile)
        flags = [
            *find_flags(submission, [prepared.without_reference_events(run) for run in _with_fresh_run(runs, judged)]),
            *runs.twins.flags,
        ]
        unasked = (fresh.calls if fresh else 0) < LEAST_FRESH_CALLS <= prepared.fresh_calls
        quarantined = bool(flaky) or runs.twins.flaky or unasked
        sound = not flags and not quarantined and _structure_holds(checks)
        passed = sound and context.counts.all_passed and agrees_enough(fresh)
        paid = passed and not prepared.floor.passes
        worth = reward(kind, checks, flags, context.counts, task.weights, paid)
        twins, mode = len(prepared.plan.validated), prepared.ways.mode(task.tests)
        compared = self._self_compared(prepared)
        verdict = Verdict(
            passed=passed,
            reward=min(worth, 0.0) if quarantined else worth,
            checks=checks,
            integrity=flags,
            signals=[
                *runs.twins.signals,
                *_flaky_signal(flaky, task.tests.held_out),
                *([_UNASKED] if unasked else []),
                *([_NOTHING_ASKED] if prepared.floor.passes else []),
                *filter(None, [result_counts.held_out_gap(context.feature), fresh_gap(context.feature, fresh)]),
            ],
            quarantined=quarantined,
            stages=result_counts.stage_results(results, self.loaded_task),
            tests=context.counts,
            failures=result_counts.visible_failures(results, task.tests, runs.real),
            fresh=fresh,
            mode=mode,
            assurance=assurance_level(mode, task.tests, twins, fresh),
            assurance_detail=describe_assurance(prepared.ways, task.tests, twins, fresh, compared),
            seconds=time.monotonic() - began,
            cached=False,
            policy_hash=self._policy.hash,
        )
        return _Decision(verdict, results, runs, judged)


class _FreshQuestions:
    """The fresh calls of one verdict: asked in the process of the replay; where not all agree there, in a new one."""

    def __init__(self, judge: FreshJudge, calls: Sequence[FreshCall]) -> None:
        self._judge, self._calls = judge, calls
        self._agreed: FreshResult | None = None
        self._has_hung = False

    def ask_within(self, replayer: Replayer) -> None:
        self._agreed = self._judge.ask_within(replayer, self._calls)
        self._has_hung = replayer.has_hung

    def result(self, sources: SourceTree, hung: "_Hung", allowance: LoadAllowance) -> FreshResult:
        """What hung and passed no test is asked nothing else: it has earned nothing, and would hang again."""
        if hung == "everywhere":
            return FreshResult(len(self._calls), 0, ())
        has_hung = self._has_hung or hung == "somewhere"
        return self._agreed or self._judge.ask(sources, self._calls, has_hung, allowance)


@dataclass(frozen=True)
class _Decision:
    """A verdict, the results that it counted, and what they come from."""

    verdict: Verdict
    results: result_counts.Results
    runs: VerdictRuns
    fresh: FreshResult | None


def _scoring_context(
    prepared: PreparedTask,
    submission: Submission,
    runs: VerdictRuns,
    results: result_counts.Results,
    fresh: FreshCalls | None,
    analyzer: StaticAnalyzer,
) -> ScoringContext:
    tests = prepared.loaded_task.task.tests
    feature, confirming = result_counts.feature_tests(tests), prepared.ways.confirming(tests)
    deciding = [test for test in feature if test not in set(confirming)]
    return ScoringContext(
        submission=submission,
        runs=tuple(runs.real),
        counts=result_counts.count_manifest(results, tests),
        feature=result_counts.count_results(results, feature, tests.held_out),
        groups=result_counts.count_groups(results, tests, deciding),
        confirming=result_counts.count_results(results, confirming, tests.held_out),
        fresh=fresh,
        floor=prepared.floor,
        analyzer=analyzer,
    )


def _with_fresh_run(runs: VerdictRuns, fresh: FreshResult | None) -> list[VerifierRun]:
    return [*runs.every, *([fresh.run] if fresh and fresh.run else [])]


def _structure_holds(checks: Sequence[Check]) -> bool:
    """A declared architecture is a condition for passing as well as a layer."""
    return all(check.score == 1.0 for check in checks if check.name == "architecture")


def _flaky_signal(flaky: Sequence[str], held_out: Sequence[str]) -> list[Signal]:
    """A signal that names the flaky tests, except held-out ones."""
    if not flaky:
        return []
    named = ", ".join(test for test in flaky if test not in set(held_out)) or "held-out ones"
    return [Signal(name="flaky", detail=f"{len(flaky)} tests passed in one run and not in another: {named}"[:500])]
