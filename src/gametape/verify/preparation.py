"""What the verifier learns about a task once, by running its reference: how each test can run, time limits, valid
twins, usual events, and the floor.

Events that the tests cause by themselves are recorded so that no submission is flagged for them. The result is kept on
disk under the task's digest; the recording has a store of its own.
"""

import functools
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from gametape.record.atomic import write_atomically
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.sandbox.result import PolicyViolation
from gametape.verify import jobs
from gametape.verify.floor import FreshAgreement, measure_floor
from gametape.verify.machine_load import slowdown
from gametape.verify.progress import NO_FLOOR, Floor
from gametape.verify.replay.attempt import replay_attempt
from gametape.verify.replay.recording import Recording, reference_sources
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.runner import JobReport, TestProcess, ZygotePool
from gametape.verify.stage_progress import StageProgress, ignore_progress
from gametape.verify.test_ways import TestWays, choose_ways, restrict_task
from gametape.verify.twins.plan import TwinPlan, validate_twins
from gametape.verify.verifier_run import VerifierRun, parse_report

_FORMAT = 10
_DEFAULT_JOB_SECONDS = 120.0
_LEAST_FILE_SECONDS, _SLACK = 5.0, 10.0
_LEAST_JOB_SECONDS = 30.0
_MOST_FLOOR_SECONDS = 10.0
"""Seconds that the tests of one trivial program may take."""


@dataclass(frozen=True)
class PreparedTask:
    """A task and what its reference showed. A test file may take `file_seconds`, a whole job `job_seconds`; both are
    about tests that are not in the recording."""

    loaded_task: LoadedTask
    plan: TwinPlan
    file_seconds: Mapping[str, float]
    job_seconds: float
    blank: bool
    """Whether the tests pass without their own text on disk. Then it is not there for code under test either."""
    reference_events: frozenset[tuple[str, str]]
    """Kind and detail of the events in the reference's own run."""
    recording: Recording | None = None
    """What crosses between tests and reference; None where the task is a shared one or has no reference."""
    floor: Floor = NO_FLOOR
    fresh_calls: int = 0
    """How many fresh calls a verdict gets."""
    from_disk: bool = False
    """Whether another verifier, perhaps in another process, had learned it before."""

    @functools.cached_property
    def ways(self) -> TestWays:
        return choose_ways(self.loaded_task.task, self.recording)

    @functools.cached_property
    def unrecorded(self) -> "PreparedTask | None":
        """The same for the tests that are not in the recording; None if all are."""
        tests = unrecorded_tests(self.loaded_task, self.recording)
        return replace(self, loaded_task=restrict_task(self.loaded_task, tests)) if tests else None

    def without_reference_events(self, run: VerifierRun) -> VerifierRun:
        """A run without the events that the reference's run has too. A patch is matched by its name, a denied system
        call by its name and first argument, another event by its kind."""
        kinds = {kind for kind, _ in self.reference_events if kind != "patched"}
        events = [
            event
            for event in run.events
            if event.kind not in kinds and (event.kind, event.detail) not in self.reference_events
        ]
        violations = [call for call in run.violations if _denied_call(call) not in self.reference_events]
        return replace(run, events=tuple(events), violations=tuple(violations))


def _denied_call(violation: PolicyViolation) -> tuple[str, str]:
    return f"refused {violation.syscall}", str(violation.args[0]) if violation.args else ""


def unrecorded_tests(loaded_task: LoadedTask, recording: Recording | None) -> list[str]:
    """The tests that neither replay nor run live from a recording."""
    recorded = {*recording.transcripts, *recording.live} if recording else set()
    return [test for test in loaded_task.task.tests.every if test not in recorded]


def prepare_task(
    loaded_task: LoadedTask,
    recording: Recording | None,
    zygotes: ZygotePool,
    sandboxes: ReplaySandboxes,
    fresh_calls: Callable[[], int] = lambda: 0,
    fresh_agreement: FreshAgreement | None = None,
    home: Path | None = None,
    on_progress: StageProgress = ignore_progress,
) -> PreparedTask:
    """Read it from disk where it is known, else run the reference a few times, and trivial programs."""
    path = preparation_path(home, loaded_task) if home else None
    if path and (known := _read(path, loaded_task, recording)):
        return known
    if unrecorded_tests(loaded_task, recording) and loaded_task.reference is not None:
        on_progress("running tests that are not recorded", 0, 0)
    prepared = _measure(loaded_task, recording, zygotes)
    if loaded_task.reference is not None:
        if recording and (recording.transcripts or recording.live):
            prepared = _with_replay_events(prepared, recording, zygotes, sandboxes)
        confirming = prepared.ways.confirming(loaded_task.task.tests)
        seconds = min(_MOST_FLOOR_SECONDS, loaded_task.task.limits.verifier_seconds or _DEFAULT_JOB_SECONDS)
        calls = fresh_calls()
        agreement = fresh_agreement if calls else None
        shared = prepared.ways.mode(loaded_task.task.tests) == "shared"
        floor = measure_floor(loaded_task, confirming, seconds, agreement, on_progress, shared)
        prepared = replace(prepared, floor=floor, fresh_calls=calls)
    if path:
        write_atomically(path, json.dumps(_document(prepared)).encode())
    return prepared


def preparation_path(home: Path, loaded_task: LoadedTask, suffix: str = ".json") -> Path:
    """Where what was learned about a task lies, in a directory that is there."""
    directory = home / "prepared"
    directory.mkdir(parents=True, exist_ok=True)
    return directory / f"{loaded_task.digest}{suffix}"


def _with_replay_events(
    prepared: PreparedTask, recording: Recording, zygotes: ZygotePool, sandboxes: ReplaySandboxes
) -> PreparedTask:
    """With the events of the reference's own replay."""
    loaded_task = prepared.loaded_task
    replayed = replay_attempt(
        recording, loaded_task, reference_sources(loaded_task), sandboxes, zygotes, random.Random(0)
    )
    events = frozenset[tuple[str, str]]().union(*map(_events_of, replayed.runs))
    return replace(prepared, reference_events=prepared.reference_events | events)


def _events_of(run: VerifierRun) -> set[tuple[str, str]]:
    return {(event.kind, event.detail) for event in run.events} | {_denied_call(call) for call in run.violations}


def _measure(loaded_task: LoadedTask, recording: Recording | None, zygotes: ZygotePool) -> PreparedTask:
    """Run the tests that are not in the recording over the reference, and find their twins where they run shared."""
    longest = loaded_task.task.limits.verifier_seconds or _DEFAULT_JOB_SECONDS
    files = jobs.group_by_file(loaded_task.task.tests.every)
    seconds = dict.fromkeys(files, longest)
    untimed = PreparedTask(loaded_task, TwinPlan.empty(), seconds, longest, True, frozenset(), recording)
    if loaded_task.reference is None or untimed.unrecorded is None:
        return untimed
    rest = untimed.unrecorded
    tests = rest.loaded_task.task.tests
    files = jobs.group_by_file(tests.every)
    sources = reference_sources(loaded_task)
    first = _run(rest, sources, zygotes, rest.loaded_task.suite, tests.every)
    blank = all(first.result(test) == "passed" for test in tests.every)
    if not blank:
        first = _run(replace(rest, blank=False), sources, zygotes, rest.loaded_task.suite, tests.every)
    taken = {file: sum(first.outcomes[test].seconds for test in ids) for file, ids in files.items()}
    seconds |= {file: min(longest, max(_LEAST_FILE_SECONDS, _SLACK * took)) for file, took in taken.items()}
    job_seconds = min(longest, _LEAST_JOB_SECONDS + 2 * _SLACK * sum(taken.values()))
    timed = replace(
        untimed,
        file_seconds=seconds,
        job_seconds=job_seconds,
        blank=blank,
        reference_events=frozenset(_events_of(first)),
    )
    if loaded_task.task.mode == "split":
        return timed
    passing = [test for test in tests.every if first.result(test) == "passed"]
    timed_rest = replace(rest, file_seconds=seconds, job_seconds=job_seconds, blank=blank)

    def run(suite: SourceTree, ids: Sequence[str]) -> Mapping[str, str]:
        result = _run(timed_rest, sources, zygotes, suite, ids)
        return {test: result.result(test) for test in ids}

    return replace(timed, plan=validate_twins(rest.loaded_task.suite, passing, run))


def _run(
    prepared: PreparedTask, sources: SourceTree, zygotes: ZygotePool, suite: SourceTree, tests: Sequence[str]
) -> VerifierRun:
    processes = jobs.plan_processes("reference", suite, tests, prepared.file_seconds, blank=prepared.blank)
    return parse_report(run_processes(prepared, sources, zygotes, suite, processes), processes)


def run_processes(
    prepared: PreparedTask,
    sources: SourceTree,
    zygotes: ZygotePool,
    suite: SourceTree,
    processes: Sequence[TestProcess],
) -> JobReport:
    """Run test processes over sources, one after the other in one sandbox."""
    zygote = zygotes.take(prepared.loaded_task.interpreter, jobs.memory_mb(prepared.loaded_task))
    job = jobs.build_job(prepared.loaded_task, sources, suite, processes)
    return zygote.run(job, prepared.job_seconds * slowdown())


def _document(prepared: PreparedTask) -> dict[str, object]:
    return {
        "format": _FORMAT,
        "plan": prepared.plan.to_json(),
        "seconds": dict(prepared.file_seconds),
        "patience": prepared.job_seconds,
        "blank": prepared.blank,
        "usual": sorted(prepared.reference_events),
        "floor": asdict(prepared.floor),
        "fresh_calls": prepared.fresh_calls,
        "unrecorded": unrecorded_tests(prepared.loaded_task, prepared.recording),
    }


def _read(path: Path, loaded_task: LoadedTask, recording: Recording | None) -> PreparedTask | None:
    """None when there is no usable file, or another recording was there: then the reference is run again."""
    try:
        known = json.loads(path.read_bytes())
        if known["format"] != _FORMAT or known["unrecorded"] != unrecorded_tests(loaded_task, recording):
            return None
        return PreparedTask(
            loaded_task=loaded_task,
            plan=TwinPlan.from_json(known["plan"]),
            file_seconds=known["seconds"],
            job_seconds=known["patience"],
            blank=known["blank"],
            reference_events=frozenset((str(kind), str(detail)) for kind, detail in known["usual"]),
            recording=recording,
            floor=Floor(**known["floor"]),
            fresh_calls=known["fresh_calls"],
            from_disk=True,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
