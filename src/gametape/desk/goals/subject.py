"""A goal as the verifier knows things: a subject without a reference, and twins for it all the same.

A task is prepared from its reference. A goal has none, so tests that passed before get twins that were seen to fail on
the pinned tree, and the others get theirs by construction: a twin contradicts its test, so no code that does the same
thing twice passes both.
"""

import random
from collections.abc import Sequence
from pathlib import Path

from gametape.core.task import Task, TaskTests
from gametape.desk.goals.baseline import Baseline
from gametape.verify import jobs
from gametape.verify.crew import Crew
from gametape.verify.observe import observe
from gametape.verify.preparation import Prepared, run_steps
from gametape.verify.subject import Subject
from gametape.verify.tree import Tree
from gametape.verify.twins.plan import TwinPlan, Validated, validate
from gametape.verify.twins.suite import place, twins_of_suite

_LEAST_SECONDS, _SLACK = 120.0, 10.0
_LEAST_PATIENCE = 600.0
_ROUNDS = 2
_MOST_TRIED = 24
"""Functions whose tests passed before and whose twins are tried: no verdict lays more."""


def subject_of(
    name: str, instruction: str, start: Tree, baseline: Baseline, interpreter: Path | None, tests: TaskTests
) -> Subject:
    """Everything of the workspace may be changed but its tests and what configures their runner."""
    task = Task(
        name=name,
        mode="shared",
        instruction=instruction,
        source_paths=["."],
        test_paths=baseline.test_paths,
        import_roots=baseline.import_roots,
        tests=tests,
    )
    return Subject(task, start, start.under(baseline.test_paths), interpreter=interpreter)


def prepared_for(subject: Subject, baseline: Baseline) -> Prepared:
    """What a verifier would otherwise learn from a reference."""
    files = jobs.by_file(subject.task.tests.every)
    seconds = {file: max(_LEAST_SECONDS, _SLACK * baseline.seconds.get(file, 0.0)) for file in files}
    patience = _LEAST_PATIENCE + 2 * _SLACK * sum(baseline.seconds.values())
    known = TwinPlan.from_json(baseline.plan)
    plan = TwinPlan((*known.validated, *_by_construction(subject.suite, subject.task.tests.fail_to_pass)))
    return Prepared(subject, plan, seconds, patience, True, frozenset(baseline.usual))


def _by_construction(suite: Tree, tests: Sequence[str]) -> list[Validated]:
    ids: dict[tuple[str, str], list[str]] = {}
    for test in tests:
        ids.setdefault(place(test), []).append(test)
    made = twins_of_suite(suite, tests)
    found = []
    for key, twins in made.items():
        for twin in twins:
            wanted = f"{key[0]}::{key[1]}[{twin.case}]"
            flips = tuple(test for test in ids[key] if twin.case is None or test == wanted)
            found += [Validated(key[0], twin, flips)] if flips else []
    return found


def learned(bare: Baseline, start: Tree, interpreter: Path | None, crew: Crew) -> Baseline:
    """A baseline with what the pinned tree shows about its tests: their twins, and what they do to their process."""
    passing = bare.tests("passed")
    if not passing:
        return bare
    tests = TaskTests(fail_to_pass=[], pass_to_pass=passing)
    subject = subject_of("baseline", "", start, bare, interpreter, tests)
    prepared = prepared_for(subject, bare)
    sources = start.without(set(subject.suite))

    def run(suite: Tree, ids: Sequence[str]) -> dict[str, str]:
        steps = jobs.steps("twins", suite, ids, prepared.seconds, blank=True)
        seen = observe(run_steps(prepared, sources, crew, suite, steps), steps)
        return {test: seen.result(test) for test in ids}

    steps = jobs.steps("baseline", subject.suite, passing, prepared.seconds)
    seen = observe(run_steps(prepared, sources, crew, subject.suite, steps), steps)
    usual = {(event.kind, event.detail) for event in seen.events}
    functions = sorted({place(test) for test in passing})
    tried = {*random.Random(len(functions)).sample(functions, min(len(functions), _MOST_TRIED))}
    plan = validate(subject.suite, [test for test in passing if place(test) in tried], run, _ROUNDS)
    return bare.model_copy(update={"usual": sorted(usual), "plan": plan.to_json()})
