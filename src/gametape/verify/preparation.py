"""What is learned about a task once, from its reference, before anything is verified against it.

How long its tests take, which twins truly fail, and what its tests do to the process by themselves, so that nobody is
accused of it. Kept on disk under the task's digest.
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
_DEFAULT_PATIENCE = 120.0
_LEAST_SECONDS, _SLACK = 5.0, 10.0
_LEAST_PATIENCE = 30.0
_DEFAULT_MEMORY_MB = 2048


@dataclass(frozen=True)
class PreparedTask:
    """A subject and what is known about it. `seconds` is what each test file may take, `patience` a whole job."""

    loaded_task: LoadedTask
    plan: TwinPlan
    file_seconds: Mapping[str, float]
    job_seconds: float
    blank: bool
    """Whether the tests pass without their own text on disk; then it is not there for others either."""
    reference_events: frozenset[tuple[str, str]]
    """Events of the reference's own runs: what they did to the process, by kind and detail."""

    @property
    def memory_mb(self) -> int:
        return self.loaded_task.task.limits.memory_mb or _DEFAULT_MEMORY_MB

    def without_reference_events(self, run: VerifierRun) -> VerifierRun:
        """A run without what the reference's runs show too. A patch is known by its name, a refused call by itself and
        its first argument, other events by their kind."""
        kinds = {kind for kind, _ in self.reference_events if kind != "patched"}
        events = [
            one for one in run.events if one.kind not in kinds and (one.kind, one.detail) not in self.reference_events
        ]
        violations = [one for one in run.violations if _denied_call(one) not in self.reference_events]
        return replace(run, events=tuple(events), violations=tuple(violations))


def _denied_call(violation: PolicyViolation) -> tuple[str, str]:
    return f"refused {violation.syscall}", str(violation.args[0]) if violation.args else ""


def prepare_task(loaded_task: LoadedTask, zygotes: ZygotePool, home: Path | None = None) -> PreparedTask:
    """From disk where it is known, else by running the reference a few times."""
    kept = home / "prepared" / f"{loaded_task.digest}.json" if home else None
    if kept and (known := _read(kept, loaded_task)):
        return known
    prepared = _measure(loaded_task, zygotes)
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, json.dumps(_document(prepared)).encode())
    return prepared


def _measure(loaded_task: LoadedTask, zygotes: ZygotePool) -> PreparedTask:
    tests = loaded_task.task.tests
    longest = loaded_task.task.limits.verifier_seconds or _DEFAULT_PATIENCE
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
    seconds = {file: min(longest, max(_LEAST_SECONDS, _SLACK * took)) for file, took in taken.items()}
    patience = min(longest, _LEAST_PATIENCE + 2 * _SLACK * sum(taken.values()))
    seen = {(event.kind, event.detail) for event in first.events} | {_denied_call(one) for one in first.violations}
    timed = PreparedTask(loaded_task, TwinPlan.empty(), seconds, patience, blank, frozenset(seen))
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
    steps = jobs.plan_processes("reference", suite, tests, prepared.file_seconds, blank=prepared.blank)
    return parse_report(run_processes(prepared, sources, zygotes, suite, steps), steps)


def run_processes(
    prepared: PreparedTask,
    sources: SourceTree,
    zygotes: ZygotePool,
    suite: SourceTree,
    processes: Sequence[TestProcess],
) -> JobReport:
    """Run steps over sources in a sandbox of their own."""
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
    """None when there is nothing, or nothing that can be used: then it is learned again."""
    try:
        known = json.loads(path.read_bytes())
        if known["format"] != _FORMAT:
            return None
        usual = frozenset((str(kind), str(detail)) for kind, detail in known["usual"])
        plan = TwinPlan.from_json(known["plan"])
        return PreparedTask(loaded_task, plan, known["seconds"], known["patience"], known["blank"], usual)
    except (OSError, ValueError, KeyError, TypeError):
        return None
