"""Record what crosses when each test of a task runs alone against the reference, and keep what is steady.

A test is replayable if it passes with the tests in one sandbox and the reference in another, and if its transcript
replays to the same answers against the reference in two processes with different hash seeds and orders.
"""

import functools
import random
import socket
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from gametape.core.task import SplitSurface
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify import jobs
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay.comparison import Difference
from gametape.verify.replay.reason import why_not
from gametape.verify.replay.relay import Crossing, FrameRelay
from gametape.verify.replay.replayer import Replayer, ReplayResult
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.replay.script import Script, write_script
from gametape.verify.replay.store import NotReplayable, RecordedTest, TranscriptStore
from gametape.verify.replay.surface import derive_surface
from gametape.verify.replay.transcript import Transcript
from gametape.verify.runner import TestProcess, ZygotePool
from gametape.verify.split_mode import SplitRun
from gametape.verify.stage_progress import StageCounter, StageProgress, ignore_progress
from gametape.verify.transcript_text import describe_answer, describe_request, object_names
from gametape.verify.verifier_run import TestOutcome

_AT_ONCE = 60
"""Tests of one job: each has a socket, and one message passes at most 253."""
_PARALLEL = 2
_KEPT_TOGETHER = _AT_ONCE * _PARALLEL
"""After so many tests what they gave is kept, so that a recording that is ended goes on there the next time."""
_TEST_SECONDS = 20.0
_JOB_SECONDS, _EACH_SECONDS = 60.0, 3.0
_LONGEST = 500


@dataclass(frozen=True)
class Recording:
    """What recording a task's tests gave."""

    surface: SplitSurface
    """What the tests reach through the proxy."""
    transcripts: Mapping[str, Transcript] = field(default_factory=dict)
    """By test, those that are steady."""
    live: frozenset[str] = frozenset()
    """Tests that pass apart from the reference, without a steady transcript."""
    reasons: Mapping[str, NotReplayable] = field(default_factory=dict)
    """For every test without a steady transcript."""
    isolated: frozenset[str] = frozenset()
    """Transcripts that are steady only in a process of their own."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Of each test that passed apart from the reference."""

    @functools.cached_property
    def scripts(self) -> Mapping[str, Script]:
        return {test: write_script(transcript) for test, transcript in self.transcripts.items()}


def record_tests(
    loaded_task: LoadedTask,
    zygotes: ZygotePool,
    sandboxes: ReplaySandboxes,
    home: Path | None = None,
    on_progress: StageProgress = ignore_progress,
) -> Recording:
    """Record every test of the task. What other tasks with the same reference and suite recorded is read from disk."""
    surface = derive_surface(loaded_task)
    tests = loaded_task.task.tests.every
    if loaded_task.reference is None:
        reason = NotReplayable("reference", "the task has no reference to record")
        return Recording(surface, reasons=dict.fromkeys(tests, reason))
    store = TranscriptStore(home / "transcripts" if home else None, loaded_task, surface)
    known = store.read(tests)
    missing = [test for test in tests if test not in known]
    counter = StageCounter(on_progress, "recording tests", len(missing))
    for start in range(0, len(missing), _KEPT_TOGETHER):
        some = missing[start : start + _KEPT_TOGETHER]
        checked = _check(loaded_task, _record(loaded_task, surface, some, zygotes, counter), sandboxes)
        store.add(checked)
        known |= {each.test: each for each in checked}
    return _collect(surface, [known[test] for test in tests])


def _collect(surface: SplitSurface, tests: Iterable[RecordedTest]) -> Recording:
    tests = [*tests]
    return Recording(
        surface=surface,
        transcripts={each.test: each.transcript for each in tests if each.transcript and each.steady},
        live=frozenset(each.test for each in tests if each.passed and not each.steady),
        reasons={each.test: each.reason for each in tests if each.reason},
        isolated=frozenset(each.test for each in tests if each.isolated),
        seconds={each.test: each.seconds for each in tests if each.passed},
    )


def reference_sources(loaded_task: LoadedTask) -> SourceTree:
    """The reference's files at the paths that are taken from an attempt."""
    assert loaded_task.reference is not None
    sources = loaded_task.reference.under(loaded_task.task.source_paths)
    return sources.without(set(sources.under(loaded_task.task.test_paths)))


def _record(
    loaded_task: LoadedTask,
    surface: SplitSurface,
    tests: Sequence[str],
    zygotes: ZygotePool,
    counter: StageCounter,
) -> list[RecordedTest]:
    """Run each test in a test process and a worker of its own."""
    batches = [tests[start : start + _AT_ONCE] for start in range(0, len(tests), _AT_ONCE)]
    sources = reference_sources(loaded_task)

    def record(batch: Sequence[str]) -> list[RecordedTest]:
        processes = [_process(loaded_task.suite, test, str(number)) for number, test in enumerate(batch)]
        crossings: list[Crossing] = []
        with FrameRelay(counter.count) as relay:

            def connect(_: int) -> tuple[socket.socket, socket.socket]:
                worker, tester, crossing = relay.connect()
                crossings.append(crossing)
                return worker, tester

            seconds = _JOB_SECONDS + _EACH_SECONDS * len(batch)
            split_run = SplitRun(loaded_task, surface, zygotes, seconds)
            run = split_run.run(sources, processes, "alone", connect)
        return [_recorded(run.outcomes[test], crossing) for test, crossing in zip(batch, crossings, strict=True)]

    with ThreadPoolExecutor(_PARALLEL) as threads:
        return [recorded for batch in threads.map(record, batches) for recorded in batch]


def _process(suite: SourceTree, test: str, name: str) -> TestProcess:
    file = jobs.file_of(test)
    laid = {file: suite.files[file].decode("utf-8", "surrogateescape")}
    return TestProcess(name, file, (test,), laid, recorded=True, seconds=_TEST_SECONDS)


def _recorded(outcome: TestOutcome, crossing: Crossing) -> RecordedTest:
    if outcome.result != "passed":
        return RecordedTest(outcome.id, reason=why_not(outcome))
    if not crossing.whole:
        reason = NotReplayable("size", "more crosses than a transcript may hold")
        return RecordedTest(outcome.id, passed=True, reason=reason, seconds=crossing.seconds)
    transcript = Transcript(outcome.id, tuple(crossing.frames), crossing.seconds)
    return RecordedTest(outcome.id, passed=True, transcript=transcript, seconds=crossing.seconds)


def _check(loaded_task: LoadedTask, tests: Sequence[RecordedTest], sandboxes: ReplaySandboxes) -> list[RecordedTest]:
    """Replay the transcripts against the reference, in two sandboxes, and so with two hash seeds and orders."""
    scripts = {each.test: write_script(each.transcript) for each in tests if each.transcript}
    order = [*scripts]
    random.Random(len(order)).shuffle(order)
    sources = reference_sources(loaded_task)
    unsteady: dict[str, ReplayResult] = {}
    together: set[str] = set()
    with (
        Replayer(loaded_task, sources, sandboxes, "reference", new=True) as first,
        Replayer(loaded_task, sources, sandboxes, "reference", new=True) as second,
    ):
        for replayer, names in ((first, order), (second, order[::-1])):
            results = replayer.replay(scripts[name] for name in names)
            together |= {result.test for result in results if not result.same}
        again = [name for name in order if name in together]
        for replayer in (first, second):
            results = replayer.replay((scripts[name] for name in again), alone=True)
            unsteady |= {result.test: result for result in results if not result.same}
    return [_judged(each, each.test in together, unsteady.get(each.test)) for each in tests]


def _judged(recorded: RecordedTest, isolated: bool, unsteady: ReplayResult | None) -> RecordedTest:
    if recorded.transcript is None:
        return recorded
    if unsteady is None:
        return replace(recorded, steady=True, isolated=isolated)
    detail = "timed out" if unsteady.timed_out else "died" if unsteady.died else ""
    if unsteady.difference:
        detail = _told_difference(unsteady.difference, object_names(recorded.transcript))
    return replace(recorded, transcript=None, reason=NotReplayable("unsteady", detail))


def _told_difference(found: Difference, names: Mapping[int, str]) -> str:
    if found.request[0] != words.REQUEST:
        return "answers differ from run to run, during a call of a function of the test"
    first, second = describe_answer(found.expected, names), describe_answer(found.actual, names)
    return f"answers differ from run to run: {describe_request(found.request, names)} gave {first} and {second}"[
        :_LONGEST
    ]
