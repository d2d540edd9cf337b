"""What the verifier learns about a task once, by running its reference: time limits, valid twins, usual events.

Events that the tests cause by themselves are recorded so that no submission is flagged for them. The result is kept on
disk under the task's digest.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gametape.record.atomic import write_atomically
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.sandbox.result import PolicyViolation
from gametape.verify import jobs
from gametape.verify.runner import JobReport, TestProcess, ZygotePool
from gametape.verify.twins.plan import TwinPlan, validate_twins
from gametape.verify.verifier_run import VerifierRun, parse_report

_FORMAT = 5
_DEFAULT_JOB_SECONDS = 120.0
_LEAST_FILE_SECONDS, _SLACK = 5.0, 10.0
_LEAST_JOB_SECONDS = 30.0
_DEFAULT_MEMORY_MB = 2048


@dataclass(frozen=True)
class PreparedTask:
    """A task and what its reference showed. A test file may take `file_seconds`, a whole job `job_seconds`."""

    loaded_task: LoadedTask
    plan: TwinPlan
    file_seconds: Mapping[str, float]
    job_seconds: float
    blank: bool
    """Whether the tests pass without their own text on disk. Then it is not there for code under test either."""
    reference_events: frozenset[tuple[str, str]]
    """Kind and detail of the events in the reference's own run."""

    @property
    def memory_mb(self) -> int:
        return self.loaded_task.task.limits.memory_mb or _DEFAULT_MEMORY_MB

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


def prepare_task(loaded_task: LoadedTask, zygotes: ZygotePool, home: Path | None = None) -> PreparedTask:
    """Read it from disk where it is known, else run the reference a few times."""
    path = home / "prepared" / f"{loaded_task.digest}.json" if home else None
    if path and (known := _read(path, loaded_task)):
        return known
    prepared = _measure(loaded_task, zygotes)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(_document(prepared)).encode())
    return prepared


def _measure(loaded_task: LoadedTask, zygotes: ZygotePool) -> PreparedTask:
    tests = loaded_task.task.tests
    longest = loaded_task.task.limits.verifier_seconds or _DEFAULT_JOB_SECONDS
    files = jobs.group_by_file(tests.every)
    untimed = PreparedTask(loaded_task, TwinPlan.empty(), dict.fromkeys(files, longest), longest, True, frozenset())
    if loaded_task.reference is None:
        return untimed
    sources = loaded_task.reference.under(loaded_task.task.source_paths)
    sources = sources.without(set(sources.under(loaded_task.task.test_paths)))
    first = _run(untimed, sources, zygotes, loaded_task.suite, tests.every)
    blank = all(first.result(test) == "passed" for test in tests.every)
    if not blank:
        first = _run(replace(untimed, blank=False), sources, zygotes, loaded_task.suite, tests.every)
    taken = {file: sum(first.outcomes[test].seconds for test in ids) for file, ids in files.items()}
    seconds = {file: min(longest, max(_LEAST_FILE_SECONDS, _SLACK * took)) for file, took in taken.items()}
    job_seconds = min(longest, _LEAST_JOB_SECONDS + 2 * _SLACK * sum(taken.values()))
    events = {(event.kind, event.detail) for event in first.events} | {_denied_call(call) for call in first.violations}
    timed = PreparedTask(loaded_task, TwinPlan.empty(), seconds, job_seconds, blank, frozenset(events))
    if loaded_task.task.mode == "split":
        return timed
    passing = [test for test in tests.every if first.result(test) == "passed"]

    def run(suite: SourceTree, ids: Sequence[str]) -> Mapping[str, str]:
        result = _run(timed, sources, zygotes, suite, ids)
        return {test: result.result(test) for test in ids}

    plan = validate_twins(loaded_task.suite, passing, run)
    return replace(timed, plan=plan)


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
    zygote = zygotes.take(prepared.loaded_task.interpreter, prepared.memory_mb)
    return zygote.run(jobs.build_job(prepared.loaded_task, sources, suite, processes), prepared.job_seconds)


def _document(prepared: PreparedTask) -> dict[str, object]:
    return {
        "format": _FORMAT,
        "plan": prepared.plan.to_json(),
        "seconds": dict(prepared.file_seconds),
        "patience": prepared.job_seconds,
        "blank": prepared.blank,
        "usual": sorted(prepared.reference_events),
    }


def _read(path: Path, loaded_task: LoadedTask) -> PreparedTask | None:
    """None when there is no usable file: then the reference is run again."""
    try:
        known = json.loads(path.read_bytes())
        if known["format"] != _FORMAT:
            return None
        reference_events = frozenset((str(kind), str(detail)) for kind, detail in known["usual"])
        plan = TwinPlan.from_json(known["plan"])
        return PreparedTask(loaded_task, plan, known["seconds"], known["patience"], known["blank"], reference_events)
    except (OSError, ValueError, KeyError, TypeError):
        return None
