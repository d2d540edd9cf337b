"""What is learned about a task once, from its reference, before anything is verified against it.

How long its tests take, which twins truly fail, and what its tests do to the process by themselves, so that nobody is
accused of it. Kept on disk under the task's digest.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gametape.record.atomic import write_atomically
from gametape.sandbox.result import Violation
from gametape.verify import jobs
from gametape.verify.crew import Crew
from gametape.verify.observation import Run
from gametape.verify.observe import observe
from gametape.verify.runner import Report, Step
from gametape.verify.subject import Subject
from gametape.verify.tree import Tree
from gametape.verify.twins.plan import TwinPlan, validate

_FORMAT = 5
_DEFAULT_PATIENCE = 120.0
_LEAST_SECONDS, _SLACK = 5.0, 10.0
_LEAST_PATIENCE = 30.0
_DEFAULT_MEMORY_MB = 2048


@dataclass(frozen=True)
class Prepared:
    """A subject and what is known about it. `seconds` is what each test file may take, `patience` a whole job."""

    subject: Subject
    plan: TwinPlan
    seconds: Mapping[str, float]
    patience: float
    blank: bool
    """Whether the tests pass without their own text on disk; then it is not there for others either."""
    usual: frozenset[tuple[str, str]]
    """Events of the reference's own runs: what they did to the process, by kind and detail."""

    @property
    def memory_mb(self) -> int:
        return self.subject.task.limits.memory_mb or _DEFAULT_MEMORY_MB

    def unusual(self, run: Run) -> Run:
        """A run without what the reference's runs show too. A patch is known by its name, a refused call by itself and
        its first argument, other events by their kind."""
        kinds = {kind for kind, _ in self.usual if kind != "patched"}
        events = [one for one in run.events if one.kind not in kinds and (one.kind, one.detail) not in self.usual]
        violations = [one for one in run.violations if _refused(one) not in self.usual]
        return replace(run, events=tuple(events), violations=tuple(violations))


def _refused(violation: Violation) -> tuple[str, str]:
    return f"refused {violation.syscall}", str(violation.args[0]) if violation.args else ""


def prepare(subject: Subject, crew: Crew, home: Path | None = None) -> Prepared:
    """From disk where it is known, else by running the reference a few times."""
    kept = home / "prepared" / f"{subject.digest}.json" if home else None
    if kept and (known := _read(kept, subject)):
        return known
    prepared = _measure(subject, crew)
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, json.dumps(_document(prepared)).encode())
    return prepared


def _measure(subject: Subject, crew: Crew) -> Prepared:
    tests = subject.task.tests
    longest = subject.task.limits.verifier_seconds or _DEFAULT_PATIENCE
    files = jobs.by_file(tests.every)
    untimed = Prepared(subject, TwinPlan.empty(), dict.fromkeys(files, longest), longest, True, frozenset())
    if subject.reference is None:
        return untimed
    sources = subject.reference.under(subject.task.source_paths)
    sources = sources.without(set(sources.under(subject.task.test_paths)))
    first = _run(untimed, sources, crew, subject.suite, tests.every)
    blank = all(first.result(test) == "passed" for test in tests.every)
    if not blank:
        first = _run(replace(untimed, blank=False), sources, crew, subject.suite, tests.every)
    taken = {file: sum(first.outcomes[test].seconds for test in ids) for file, ids in files.items()}
    seconds = {file: min(longest, max(_LEAST_SECONDS, _SLACK * took)) for file, took in taken.items()}
    patience = min(longest, _LEAST_PATIENCE + 2 * _SLACK * sum(taken.values()))
    seen = {(event.kind, event.detail) for event in first.events} | {_refused(one) for one in first.violations}
    timed = Prepared(subject, TwinPlan.empty(), seconds, patience, blank, frozenset(seen))
    if subject.task.mode == "split":
        return timed
    passing = [test for test in tests.every if first.result(test) == "passed"]

    def run(suite: Tree, ids: Sequence[str]) -> Mapping[str, str]:
        result = _run(timed, sources, crew, suite, ids)
        return {test: result.result(test) for test in ids}

    plan = validate(subject.suite, passing, run)
    return replace(timed, plan=plan)


def _run(prepared: Prepared, sources: Tree, crew: Crew, suite: Tree, tests: Sequence[str]) -> Run:
    steps = jobs.steps("reference", suite, tests, prepared.seconds, blank=prepared.blank)
    return observe(run_steps(prepared, sources, crew, suite, steps), steps)


def run_steps(prepared: Prepared, sources: Tree, crew: Crew, suite: Tree, steps: Sequence[Step]) -> Report:
    """Run steps over sources in a sandbox of their own."""
    zygote = crew.take(prepared.subject.interpreter, prepared.memory_mb)
    return zygote.run(jobs.job(prepared.subject, sources, suite, steps), prepared.patience)


def _document(prepared: Prepared) -> dict[str, object]:
    return {
        "format": _FORMAT,
        "plan": prepared.plan.to_json(),
        "seconds": dict(prepared.seconds),
        "patience": prepared.patience,
        "blank": prepared.blank,
        "usual": sorted(prepared.usual),
    }


def _read(path: Path, subject: Subject) -> Prepared | None:
    """None when there is nothing, or nothing that can be used: then it is learned again."""
    try:
        known = json.loads(path.read_bytes())
        if known["format"] != _FORMAT:
            return None
        usual = frozenset((str(kind), str(detail)) for kind, detail in known["usual"])
        plan = TwinPlan.from_json(known["plan"])
        return Prepared(subject, plan, known["seconds"], known["patience"], known["blank"], usual)
    except (OSError, ValueError, KeyError, TypeError):
        return None
