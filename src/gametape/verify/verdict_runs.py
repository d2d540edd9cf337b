"""Run the tests of a verdict, each in its own way: recorded ones by replay, then what no recording covers."""

import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from gametape.core.task import TaskTests
from gametape.record.source_tree import SourceTree
from gametape.verify import jobs
from gametape.verify.layers.profiles import Profile
from gametape.verify.machine_load import LoadAllowance
from gametape.verify.preparation import PreparedTask
from gametape.verify.replay.attempt import ReplayedTests, replay_attempt
from gametape.verify.replay.comparison import Difference
from gametape.verify.replay.recording import Recording
from gametape.verify.replay.replayer import Replayer
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.runner import ZygotePool
from gametape.verify.shared_mode import run_shared
from gametape.verify.split_mode import SplitRun
from gametape.verify.submission import Submission
from gametape.verify.test_message import add_call, compared_values
from gametape.verify.transcript_text import describe_answer, describe_request, object_names, raised
from gametape.verify.twin_judgement import TwinJudgement, judge_twins
from gametape.verify.verifier_run import TestOutcome, VerifierRun

Afterwards = Callable[[Replayer], None]


@dataclass(frozen=True)
class VerdictRuns:
    """Every run of a verdict, the runs that have results of real tests, and the judgement of the twins."""

    every: Sequence[VerifierRun]
    """For rules over events."""
    real: Sequence[VerifierRun]
    """For counting. What an agent may see of a test comes first."""
    twins: TwinJudgement = field(default_factory=TwinJudgement)
    differences: Mapping[str, Difference] = field(default_factory=dict)
    """The first difference of each transcript that differed: for graders only."""

    def __add__(self, other: "VerdictRuns") -> "VerdictRuns":
        """Both, of which only the second may have twins."""
        return VerdictRuns(
            [*self.every, *other.every],
            [*self.real, *other.real],
            other.twins,
            {**self.differences, **other.differences},
        )


def run_tests(
    prepared: PreparedTask,
    submission: Submission,
    zygotes: ZygotePool,
    sandboxes: ReplaySandboxes,
    profile: Profile,
    afterwards: Afterwards | None,
    allowance: LoadAllowance,
) -> VerdictRuns:
    """Run all tests of a task over a submission; under the full profile, once more in another order. `afterwards` is
    called with the first replay's process where every transcript was the same. What hangs in a replay uses up the
    `allowance`."""
    rng = random.SystemRandom()
    recording, rest = prepared.recording, prepared.unrecorded
    if recording is None or not (recording.transcripts or recording.live):
        return _run_unrecorded(rest or prepared, submission, zygotes, rng, profile)
    if rest is None:
        return _run_recorded(recording, submission, zygotes, sandboxes, rng, profile, afterwards, allowance)
    with ThreadPoolExecutor(1) as thread:
        unrecorded = thread.submit(_run_unrecorded, rest, submission, zygotes, rng, profile)
        recorded = _run_recorded(recording, submission, zygotes, sandboxes, rng, profile, afterwards, allowance)
        return recorded + unrecorded.result()


def _run_recorded(
    recording: Recording,
    submission: Submission,
    zygotes: ZygotePool,
    sandboxes: ReplaySandboxes,
    rng: random.Random,
    profile: Profile,
    afterwards: Afterwards | None,
    allowance: LoadAllowance,
) -> VerdictRuns:
    def replay(then: Afterwards | None) -> ReplayedTests:
        order = random.Random(rng.randrange(1 << 60))
        loaded_task, sources = submission.loaded_task, submission.sources
        return replay_attempt(
            recording, loaded_task, sources, sandboxes, zygotes, order, afterwards=then, allowance=allowance
        )

    passes = [replay(afterwards)]
    if profile == "full" and not any(run.broke_down for run in passes[0].runs):
        passes.append(replay(None))
    return VerdictRuns(
        [run for replayed in passes for run in replayed.runs],
        [_merged_run(recording, replayed, submission.loaded_task.task.tests) for replayed in passes],
        differences=passes[0].differences,
    )


def _merged_run(recording: Recording, replayed: ReplayedTests, tests: TaskTests) -> VerifierRun:
    """The results that count, with what happened on the way to them. Only visible tests have messages."""
    runs, held_out = replayed.runs, set(tests.held_out)
    outcomes = {
        test: replace(
            outcome,
            message="" if test in held_out or outcome.result == "passed" else _message(recording, replayed, outcome),
        )
        for test, outcome in replayed.outcomes.items()
    }
    return VerifierRun(
        outcomes=outcomes,
        events=tuple(dict.fromkeys(event for run in runs for event in run.events)),
        violations=tuple(violation for run in runs for violation in run.violations),
        killed_by=next((run.killed_by for run in runs if run.killed_by), None),
        seconds=sum(run.seconds for run in runs),
        order="replayed",
    )


def _message(recording: Recording, replayed: ReplayedTests, outcome: TestOutcome) -> str:
    """What a visible test said, or would have said where the code raised an error and the test was not run for that;
    its last line has the call and the values. The answer of the reference is left out: a test may ask for less."""
    found = replayed.differences.get(outcome.id)
    if found is None:
        return outcome.message
    names = object_names(recording.transcripts[outcome.id])
    asked, error = describe_request(found.request, names), raised(found.actual)
    if not outcome.message:
        return add_call(f"E   {error}", f"{asked}: got {error}") if error else ""
    values = compared_values(outcome.message)
    if values and values[1] == describe_answer(found.actual, names):
        return add_call(outcome.message, f"{asked}: expected {values[0]}, got {values[1]}")
    return outcome.message


def _run_unrecorded(
    prepared: PreparedTask, submission: Submission, zygotes: ZygotePool, rng: random.Random, profile: Profile
) -> VerdictRuns:
    """Tests that no recording covers: apart from the code where the task says so, else in one process with it."""
    if prepared.loaded_task.task.mode == "split":
        runs = [run_split(prepared, submission.sources, zygotes)]
        if profile == "full" and not runs[0].broke_down:
            runs.append(run_split(prepared, submission.sources, zygotes, seed=rng.randrange(1 << 60)))
        return VerdictRuns(runs, runs)
    shared = run_shared(prepared, submission, zygotes, rng, second_order=profile == "full")
    return VerdictRuns(shared.runs, shared.real_runs, judge_twins(prepared, submission, zygotes, shared))


def run_split(
    prepared: PreparedTask,
    sources: SourceTree,
    zygotes: ZygotePool,
    seed: int | None = None,
    held_out_messages: bool = False,
) -> VerifierRun:
    """Run all tests of a split task; with a seed, in another order. What held-out tests say is for graders only."""
    loaded_task = prepared.loaded_task
    tests = loaded_task.task.tests
    shuffle = None if seed is None else random.Random(seed)
    suite = loaded_task.suite
    processes = [
        *jobs.plan_processes("visible", suite, tests.visible, prepared.file_seconds, messages=True, shuffle=shuffle),
        *jobs.plan_processes(
            "held out", suite, tests.held_out, prepared.file_seconds, messages=held_out_messages, shuffle=shuffle
        ),
    ]
    surface = loaded_task.task.split
    assert surface is not None
    run = SplitRun(loaded_task, surface, zygotes, prepared.job_seconds)
    return run.run(sources, processes, "as written" if seed is None else "shuffled")
