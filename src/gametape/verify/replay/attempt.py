"""A verdict's tests by replay: what an attempt answers to the calls that the tests made of the reference.

A test whose answers are the same has passed. One that differs, there or in a second replay in the opposite order, is
replayed once more in a process of its own. If it still differs, it has failed outright where the attempt raises, the
reference did not, and the test cannot catch exceptions; else the test itself decides, live, with the attempt in another
sandbox: what it does not look at may differ. Code that ruined its sandbox gets no such second chance.

An answer that depends on where the code is asked (among other tests, alone, live) is no answer: a test that is right in
one place only has failed, and one that passes live must be answered there as it was in replay. State that outlives a
test can do the same to honest code. It costs the tests that it reaches, and accuses nobody.
"""

import random
import socket
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify import jobs
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.machine_load import LoadAllowance, slowdown
from gametape.verify.replay.comparison import Difference, stands_for_data
from gametape.verify.replay.live_answers import answered_alike
from gametape.verify.replay.recording import Recording
from gametape.verify.replay.relay import Crossing, FrameRelay
from gametape.verify.replay.replayer import Replayer, ReplayResult
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.replay.tolerance import may_catch
from gametape.verify.replay.transcript import StandIn
from gametape.verify.runner import ZygotePool
from gametape.verify.split_mode import SplitRun
from gametape.verify.verifier_run import TestOutcome, TestResult, VerifierRun

_LEAST_FILE_SECONDS, _SLACK = 5.0, 10.0
_LEAST_JOB_SECONDS = 30.0
_MOST_PROCESSES = 40
"""Up to so many tests of a live run have a process each."""
_MOST_HANGING = 6
"""So many of these may hang before the run has no time left."""
_SHIFTING = "the code answered one way by itself and another way among other tests"
_NOT_AS_REPLAYED = "the code answered this test one way and a replay of it another way"
_TRIED_ALONE = 3
"""If so many transcripts differ alone exactly as they did among others, the others are taken to do so too."""


@dataclass
class _Replays:
    """What came of the transcripts in the places where they were replayed."""

    results: dict[str, ReplayResult]
    """Alone where that was tried, else among others."""
    shifting: set[str] = field(default_factory=set)
    """Tests that are the same alone and not among others."""
    elsewhere: list[ReplayResult] = field(default_factory=list)
    """What tests were among others that differ alone in another way: one of the two may hide an answer."""


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
    allowance: LoadAllowance | None = None,
) -> ReplayedTests:
    """Run the tests that have a transcript by replay and those that pass only live, or of these the `tests` given.

    `sources` are the attempt's files at the source paths. What held-out tests say in a live run is kept only with
    `held_out_messages`. `afterwards` may ask the same process more; it is called if every transcript was the same. What
    hangs uses up the `allowance`.
    """
    wanted = [test for test in recording.transcripts if tests is None or test in tests]
    rng.shuffle(wanted)
    with Replayer(loaded_task, sources, sandboxes, allowance=allowance) as replayer:
        replays = _replay(replayer, recording, wanted, loaded_task.suite)
        results, shifting = replays.results, replays.shifting
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
        live = _LiveTests(recording, loaded_task, sources, zygotes, rng, held_out_messages)
        runs += live.run(live_tests, undecided)
        outcomes |= runs[1].outcomes
        shifting |= {*live.answered_otherwise(replays.elsewhere)}
        unlike = live.answered_otherwise(differing[test] for test in undecided)
        if unlike:
            with Replayer(loaded_task, sources, sandboxes, allowance=allowance) as replayer:
                alone = replayer.replay((recording.scripts[test] for test in unlike), alone=True)
            still = live.answered_otherwise(alone)
            shifting |= {test for test in unlike if test not in still}
            outcomes |= {test: replace(outcomes[test], result="failed", message=_NOT_AS_REPLAYED) for test in still}
    outcomes |= {test: replace(outcomes[test], result="failed", message=_SHIFTING) for test in shifting}
    return ReplayedTests(
        outcomes=outcomes,
        differences={test: result.difference for test, result in differing.items() if result.difference},
        runs=tuple(runs),
        live=frozenset(live_tests),
    )


def _replay(replayer: Replayer, recording: Recording, tests: Sequence[str], suite: SourceTree) -> _Replays:
    """Replay what may share a process together, and the rest alone. Where something differs, all that a position can
    have helped is replayed together once more, backwards; what differs in one of the two is replayed alone."""
    scripts = recording.scripts
    together = [test for test in tests if test not in recording.isolated]
    forwards = {result.test: result for result in replayer.replay(scripts[test] for test in together)}
    replays = _Replays({**forwards})
    replays.results |= {
        result.test: result
        for result in replayer.replay((scripts[test] for test in tests if test in recording.isolated), alone=True)
    }
    backwards: dict[str, ReplayResult] = {}
    if not all(result.same for result in forwards.values()):
        replayer.renew()
        helped = [test for test in reversed(together) if _may_pass(suite, test, forwards[test])]
        second = replayer.replay((scripts[test] for test in helped), again=True)
        backwards = {result.test: result for result in second if result.difference}
    alike = 0
    for test in together:
        seen = [each for each in (forwards[test], backwards.get(test)) if each and not each.same]
        if not seen or seen[0].timed_out:
            continue
        alone = seen[0]
        if alike < _TRIED_ALONE:
            (again,) = replayer.replay([scripts[test]], alone=True, again=True)
            alike = alike + 1 if again == alone else -len(tests)
            alone = again if again.same or again.difference else alone
        replays.results[test] = alone
        for each in seen:
            if not each.difference or _is_of_name(each.difference):
                continue
            if alone.same:
                replays.shifting.add(test)
            elif alone.difference and each != alone:
                replays.elsewhere.append(each)
    return replays


def _may_pass(suite: SourceTree, test: str, result: ReplayResult) -> bool:
    return result.same or (result.difference is not None and not _fails_outright(suite, test, result))


def _is_of_name(difference: Difference) -> bool:
    """Whether no more differed than which function a module has by a name: a function that puts another one in its
    place when it is called first. No answer of it was compared, so none was tried in vain."""
    request, expected, actual = difference.request, difference.expected, difference.actual
    if request[0] != words.REQUEST or request[2] != words.MODULE_ATTRIBUTE or type(actual) is not tuple:
        return False
    return all(
        answer[0] == words.RETURN and isinstance(answer[2], StandIn) and answer[2].kind == words.FUNCTION
        for answer in (expected, actual)
    )


def _result(result: ReplayResult) -> TestResult:
    if result.same:
        return "passed"
    return "timed_out" if result.timed_out else "missing" if result.died else "failed"


def _fails_outright(suite: SourceTree, test: str, result: ReplayResult) -> bool:
    """Whether the test must fail: the attempt raises where the reference did not, and the test cannot catch it, or it
    answers with an object where the reference answers with a number or a text: what a test does with that, the object's
    own methods would answer."""
    difference = result.difference
    if difference is None or type(difference.actual) is not tuple:
        return False
    if difference.expected[0] == difference.actual[0] == words.RETURN and stands_for_data(
        difference.expected[2], difference.actual[2]
    ):
        return True
    raised = difference.actual[0] == words.RAISE and difference.expected[0] != words.RAISE
    outermost = difference.request[0] == words.REQUEST and difference.expected[0] != words.CALLBACK
    return raised and outermost and not may_catch(suite, test)


class _LiveTests:
    """Tests of one attempt in split mode: pytest in one sandbox, the attempt in another."""

    def __init__(
        self,
        recording: Recording,
        loaded_task: LoadedTask,
        sources: SourceTree,
        zygotes: ZygotePool,
        rng: random.Random,
        held_out_messages: bool,
    ) -> None:
        self._recording = recording
        self._loaded_task = loaded_task
        self._sources = sources
        self._zygotes = zygotes
        self._rng = rng
        self._messages = held_out_messages
        self._held_out = set(loaded_task.task.tests.held_out)
        self._crossings: dict[str, Crossing] = {}
        self._passed: set[str] = set()

    def run(self, tests: Sequence[str], undecided: Collection[str]) -> list[VerifierRun]:
        """Run the tests. Where they are so many that those of a file share a process, those of the undecided ones that
        pass run once more, apart: only then is it known what they were answered."""
        run = self._run(self._groups(tests))
        runs = [run]
        passed = [test for test in undecided if run.outcomes[test].result == "passed"]
        apart = [test for test in passed if test not in self._crossings]
        for start in range(0, len(apart), _MOST_PROCESSES):
            runs.append(self._run([[test] for test in apart[start : start + _MOST_PROCESSES]]))
        outcomes = {test: outcome for each in runs for test, outcome in each.outcomes.items()}
        self._passed = {test for test, outcome in outcomes.items() if outcome.result == "passed"}
        return [replace(run, outcomes=outcomes), *(replace(each, outcomes={}) for each in runs[1:])]

    def answered_otherwise(self, replayed: Iterable[ReplayResult]) -> list[str]:
        """Those of the tests that passed, but were not answered as in these replays."""
        scripts = self._recording.scripts
        return [
            result.test
            for result in replayed
            if result.test in self._passed
            and not result.same
            and not (
                result.difference
                and self._crossings[result.test].whole
                and answered_alike(scripts[result.test], result.difference, self._crossings[result.test].frames)
            )
        ]

    def _run(self, groups: Sequence[Sequence[str]]) -> VerifierRun:
        """Run the tests of each group in a process of their own."""
        tests = [test for group in groups for test in group]
        taken = {test: self._recording.seconds.get(test, 0.0) for test in tests}
        busy = slowdown()
        planned = [
            (group, process)
            for number, group in enumerate(groups)
            for process in jobs.plan_processes(
                f"{'held out' if group[0] in self._held_out else 'visible'} {number}",
                self._loaded_task.suite,
                group,
                {jobs.file_of(group[0]): busy * max(_LEAST_FILE_SECONDS, _SLACK * sum(taken[test] for test in group))},
                messages=self._messages or group[0] not in self._held_out,
                shuffle=self._rng,
            )
        ]
        self._rng.shuffle(planned)
        hanging = min(_MOST_HANGING, len(planned)) * _LEAST_FILE_SECONDS
        job_seconds = busy * (_LEAST_JOB_SECONDS + hanging + 2 * _SLACK * sum(taken.values()))
        split_run = SplitRun(self._loaded_task, self._recording.surface, self._zygotes, job_seconds)
        with FrameRelay() as relay:

            def connect(number: int) -> tuple[socket.socket, socket.socket]:
                worker, tester, crossing = relay.connect()
                if len(planned[number][0]) == 1:
                    self._crossings[planned[number][0][0]] = crossing
                return worker, tester

            return split_run.run(self._sources, [process for _, process in planned], "shuffled", connect)

    def _groups(self, tests: Sequence[str]) -> list[Sequence[str]]:
        """The tests of each process: one, so that one that hangs ends no other; those of a file where they are many."""
        if len(tests) <= _MOST_PROCESSES:
            return [[test] for test in tests]
        apart = ([test for test in tests if (test in self._held_out) is hidden] for hidden in (False, True))
        return [group for some in apart for group in jobs.group_by_file(some).values()]
