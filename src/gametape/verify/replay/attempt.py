"""A verdict's tests by replay: what an attempt answers to the calls that the tests made of the reference.

A test whose answers are the same has passed. One that differs is replayed once more in a process of its own. If it
still differs, it has failed outright where the attempt raises, the reference did not, and the test cannot catch
exceptions; else the test itself decides, live, with the attempt in another sandbox: what it does not look at
may differ. Code that ruined its sandbox gets no such second chance.
"""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify import jobs
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.machine_load import slowdown
from gametape.verify.replay.comparison import Difference
from gametape.verify.replay.recording import Recording
from gametape.verify.replay.replayer import Replayer, ReplayResult
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.replay.tolerance import may_catch
from gametape.verify.runner import ZygotePool
from gametape.verify.split_mode import SplitRun
from gametape.verify.verifier_run import TestOutcome, TestResult, VerifierRun

_LEAST_FILE_SECONDS, _SLACK = 5.0, 10.0
_LEAST_JOB_SECONDS = 30.0
_MOST_PROCESSES = 40
"""Up to so many tests of a live run have a process each."""
_MOST_HANGING = 6
"""So many of these may hang before the run has no time left."""
_TRIED_ALONE = 3
"""If so many transcripts differ alone exactly as they did among others, the others are taken to do so too."""


@dataclass(frozen=True)
class ReplayedTests:
    """The results of a verdict's tests, and what the attempt's processes did."""

    outcomes: Mapping[str, TestOutcome]
    differences: Mapping[str, Difference]
    """The first difference of each test that differed, with what the reference answers: for graders only."""
    runs: Sequence[VerifierRun]
    """The replay, and the live run where there was one, each with the outcomes that it decided."""
    live: frozenset[str]
    """Tests whose result is that of a live run."""


def replay_attempt(
    recording: Recording,
    loaded_task: LoadedTask,
    sources: SourceTree,
    sandboxes: ReplaySandboxes,
    zygotes: ZygotePool,
    rng: random.Random,
    tests: Collection[str] | None = None,
    held_out_messages: bool = False,
    afterwards: Callable[[Replayer], None] | None = None,
) -> ReplayedTests:
    """Run the tests that have a transcript by replay and those that pass only live, or of these the `tests` given.

    `sources` are the attempt's files at the source paths. What held-out tests say in a live run is kept only with
    `held_out_messages`. `afterwards` may ask the same process more; it is called if every transcript was the same.
    """
    wanted = [test for test in recording.transcripts if tests is None or test in tests]
    rng.shuffle(wanted)
    with Replayer(loaded_task, sources, sandboxes) as replayer:
        results = _replay(replayer, recording, wanted)
        ruined = replayer.lost > 0
        if afterwards and not ruined and all(result.same for result in results.values()):
            afterwards(replayer)
        replay_run = replayer.run()
    differing = {test: result for test, result in results.items() if not result.same}
    outright = {test for test, result in differing.items() if _fails_outright(loaded_task.suite, test, result)}
    undecided = [
        test for test, result in differing.items() if result.difference and test not in outright and not ruined
    ]
    live_tests = [*undecided, *(test for test in recording.live if tests is None or test in tests)]
    outcomes = {
        test: TestOutcome(test, _result(result), recording.seconds.get(test, 0.0))
        for test, result in results.items()
        if test not in undecided
    }
    runs = [replace(replay_run, outcomes=dict(outcomes))]
    if live_tests:
        live_run = run_live(recording, loaded_task, sources, live_tests, zygotes, rng, held_out_messages)
        runs.append(live_run)
        outcomes |= live_run.outcomes
    return ReplayedTests(
        outcomes=outcomes,
        differences={test: result.difference for test, result in differing.items() if result.difference},
        runs=tuple(runs),
        live=frozenset(live_tests),
    )


def _replay(replayer: Replayer, recording: Recording, tests: Sequence[str]) -> dict[str, ReplayResult]:
    """Together in one process, and again alone where that differs."""
    scripts = recording.scripts
    together = [test for test in tests if test not in recording.isolated]
    results = {result.test: result for result in replayer.replay(scripts[test] for test in together)}
    results |= {
        result.test: result
        for result in replayer.replay((scripts[test] for test in tests if test in recording.isolated), alone=True)
    }
    alike = 0
    for test in together:
        before = results[test]
        if before.same or before.timed_out or alike >= _TRIED_ALONE:
            continue
        (again,) = replayer.replay([scripts[test]], alone=True, again=True)
        alike = alike + 1 if again == before else -len(tests)
        results[test] = again if again.same or again.difference else before
    return results


def _result(result: ReplayResult) -> TestResult:
    if result.same:
        return "passed"
    return "timed_out" if result.timed_out else "missing" if result.died else "failed"


def _fails_outright(suite: SourceTree, test: str, result: ReplayResult) -> bool:
    """Whether the test must fail: the attempt raises where the reference did not, and the test cannot catch it."""
    difference = result.difference
    if difference is None or type(difference.actual) is not tuple:
        return False
    raised = difference.actual[0] == words.RAISE and difference.expected[0] != words.RAISE
    outermost = difference.request[0] == words.REQUEST and difference.expected[0] != words.CALLBACK
    return raised and outermost and not may_catch(suite, test)


def run_live(
    recording: Recording,
    loaded_task: LoadedTask,
    sources: SourceTree,
    tests: Sequence[str],
    zygotes: ZygotePool,
    rng: random.Random,
    held_out_messages: bool = False,
) -> VerifierRun:
    """Run some tests in split mode: pytest in one sandbox, the attempt in another."""
    task = loaded_task.task
    held_out = set(task.tests.held_out)
    taken = {test: recording.seconds.get(test, 0.0) for test in tests}
    busy = slowdown()
    processes = [
        process
        for number, group in enumerate(_live_groups(tests, held_out))
        for process in jobs.plan_processes(
            f"{'held out' if group[0] in held_out else 'visible'} {number}",
            loaded_task.suite,
            group,
            {jobs.file_of(group[0]): busy * max(_LEAST_FILE_SECONDS, _SLACK * sum(taken[test] for test in group))},
            messages=held_out_messages or group[0] not in held_out,
            shuffle=rng,
        )
    ]
    rng.shuffle(processes)
    hanging = min(_MOST_HANGING, len(processes)) * _LEAST_FILE_SECONDS
    job_seconds = busy * (_LEAST_JOB_SECONDS + hanging + 2 * _SLACK * sum(taken.values()))
    split_run = SplitRun(loaded_task, recording.surface, zygotes, job_seconds)
    return split_run.run(sources, processes, "shuffled")


def _live_groups(tests: Sequence[str], held_out: Collection[str]) -> list[Sequence[str]]:
    """The tests of each process: one, so that a test that hangs ends no other; those of a file where they are many."""
    if len(tests) <= _MOST_PROCESSES:
        return [[test] for test in tests]
    apart = ([test for test in tests if (test in held_out) is hidden] for hidden in (False, True))
    return [group for some in apart for group in jobs.group_by_file(some).values()]
