"""Shared mode: tests and code in one process, so a process can forge its own results, and must be caught at it.

Two sandboxes at once. The *shown* one runs the visible tests as written; its messages may be shown to an agent. The
*hidden* one runs two passes over held-out tests and twins. A twin takes the place and the name of its test and holds
its contradiction: nobody can pass both. In each pass a coin decides which held-out tests are real, so whoever forges
results without doing the work must guess, and one wrong guess is a contradiction.
"""

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from gametape.verify import jobs
from gametape.verify.preparation import PreparedTask, run_processes
from gametape.verify.runner import TestProcess, ZygotePool
from gametape.verify.submission import Submission
from gametape.verify.twins.plan import VALUE_KINDS, DrawnTwins, TwinPlan, draw_twins, expected_failures, mutate_suite
from gametape.verify.twins.suite_twins import FunctionKey
from gametape.verify.verifier_run import VerifierRun, parse_report

_MOST_PASSING_TWINS = 24
"""Of the tests that passed before the task was begun, so many get a twin: forging them gains nothing by itself."""


@dataclass(frozen=True)
class HiddenPass:
    """One pass of the hidden sandbox: which tests were real in it, and which were twins."""

    run: VerifierRun
    real: frozenset[str]
    twins: frozenset[str]
    kinds: Mapping[str, str]
    """The kind of each twin, by the id of its test."""
    drawn: DrawnTwins


@dataclass(frozen=True)
class SharedRuns:
    visible_run: VerifierRun
    hidden_passes: tuple[HiddenPass, HiddenPass]
    shuffled_run: VerifierRun | None
    contradictions: dict[str, str]
    """Tests that passed together with their own contradiction, and the kind of twin it was."""

    @classmethod
    def from_runs(
        cls, shown: VerifierRun, hidden: tuple[HiddenPass, HiddenPass], second: VerifierRun | None
    ) -> "SharedRuns":
        return cls(shown, hidden, second, find_contradictions(shown, hidden))

    @property
    def runs(self) -> tuple[VerifierRun, ...]:
        return (
            self.visible_run,
            *(one.run for one in self.hidden_passes),
            *((self.shuffled_run,) if self.shuffled_run else ()),
        )

    @property
    def real_runs(self) -> tuple[VerifierRun, ...]:
        """The same without what became of twins."""
        return tuple(
            replace(run, outcomes={test: run.outcomes[test] for test in run.outcomes if test not in twins})
            for run, twins in zip(self.runs, (set(), *(one.twins for one in self.hidden_passes), set()), strict=False)
        )

    @property
    def unrefuted(self) -> set[str]:
        """Tests with a twin that did not fail: whatever they did, it is not known to have been a pass."""
        return {test for one in self.hidden_passes for test in one.twins if one.run.result(test) != "failed"}

    @property
    def any_value_twin_passed(self) -> bool:
        """Whether a twin that expects another value passed. Wrong solutions hardly ever do that, forgers cannot but."""
        return any(
            one.kinds[test] in VALUE_KINDS and one.run.result(test) == "passed"
            for one in self.hidden_passes
            for test in one.twins
        )

    def agrees(self, other: "SharedRuns") -> bool:
        """Whether every test and twin did the same in both."""
        return all(
            mine.result(test) == theirs.result(test)
            for mine, theirs in zip(self.runs, other.runs, strict=False)
            for test in mine.outcomes
        )

    def passed_in_every_run(self, test: str) -> bool:
        found = [run.result(test) for run in self.real_runs if test in run.outcomes]
        return bool(found) and all(result == "passed" for result in found)


def run_shared(
    prepared: PreparedTask, submission: Submission, zygotes: ZygotePool, rng: random.Random, second_order: bool = False
) -> SharedRuns:
    """Run the tests of a shared task."""
    draws = _draws(prepared, rng)
    other = random.Random(rng.randrange(1 << 60))
    with ThreadPoolExecutor(3) as threads:
        shown = threads.submit(_shown, prepared, submission, zygotes)
        hidden = threads.submit(_hidden, prepared, submission, zygotes, draws)
        second = threads.submit(_second, prepared, submission, zygotes, other) if second_order else None
        return SharedRuns.from_runs(shown.result(), hidden.result(), second.result() if second else None)


def run_again(prepared: PreparedTask, submission: Submission, zygotes: ZygotePool, runs: SharedRuns) -> SharedRuns:
    """The same once more, with the same twins. Nothing inside can tell that it is not the first time."""
    with ThreadPoolExecutor(2) as threads:
        shown = threads.submit(_shown, prepared, submission, zygotes)
        hidden = threads.submit(
            _hidden, prepared, submission, zygotes, (runs.hidden_passes[0].drawn, runs.hidden_passes[1].drawn)
        )
        return SharedRuns.from_runs(shown.result(), hidden.result(), None)


def find_contradictions(shown: VerifierRun, passes: tuple[HiddenPass, HiddenPass]) -> dict[str, str]:
    """A test and its twin cannot both pass: where they do, somebody else said so."""
    passed = {test for test in shown.outcomes if shown.result(test) == "passed"}
    passed |= {test for one in passes for test in one.real if one.run.result(test) == "passed"}
    return {
        test: one.kinds[test]
        for one in passes
        for test in sorted(one.twins)
        if test in passed and one.run.result(test) == "passed"
    }


def _shown(prepared: PreparedTask, submission: Submission, zygotes: ZygotePool) -> VerifierRun:
    suite = jobs.visible_tests(prepared.loaded_task)
    steps = jobs.plan_processes(
        "shown", suite, prepared.loaded_task.task.tests.visible, prepared.file_seconds, messages=True
    )
    return parse_report(run_processes(prepared, submission.sources, zygotes, suite, steps), steps)


def _second(prepared: PreparedTask, submission: Submission, zygotes: ZygotePool, rng: random.Random) -> VerifierRun:
    suite, every = prepared.loaded_task.suite, prepared.loaded_task.task.tests.every
    trace = jobs.changed_python_files(submission)
    steps = jobs.plan_processes(
        "second", suite, every, prepared.file_seconds, shuffle=rng, trace=trace, blank=prepared.blank
    )
    return parse_report(run_processes(prepared, submission.sources, zygotes, suite, steps), steps, "shuffled")


def _draws(prepared: PreparedTask, rng: random.Random) -> tuple[DrawnTwins, DrawnTwins]:
    """The twins of both passes. Each visible test has one in both, of different kinds. Each held-out test has one in
    either, and one that reads like a test: nobody has seen its text, so its form must not tell. A function with some
    held-out cases is treated like a held-out one: they have to be real in one of the passes."""
    held = sorted(_held(prepared))
    heads = _half_of_each_file(held, rng)
    visible = _visible_functions(prepared, rng) - set(held)
    about_values = {function for function in sorted(visible) if rng.random() < 0.5}
    plan = _unseen(prepared)
    first = draw_twins(plan, [*sorted(visible), *sorted(set(held) - heads)], rng, about_values, held)
    return first, draw_twins(plan, [*sorted(visible), *sorted(heads)], rng, visible - about_values, held)


def _held(prepared: PreparedTask) -> set[FunctionKey]:
    return {jobs.function_of(test) for test in prepared.loaded_task.task.tests.held_out}


def _unseen(prepared: PreparedTask) -> TwinPlan:
    """The plan without twins that give themselves away: of a function with visible cases the agent knows the text, so
    wherever a held-out case can be turned by itself, nothing else is."""
    tests = prepared.loaded_task.task.tests
    mixed = _held(prepared) & {jobs.function_of(test) for test in tests.visible}
    held_out = set(tests.held_out)
    quiet = {each for each in prepared.plan.validated if each.twin.case is not None and held_out.issuperset(each.flips)}
    better = {(each.file, each.twin.function) for each in quiet} & mixed
    return TwinPlan(
        tuple(
            each for each in prepared.plan.validated if each in quiet or (each.file, each.twin.function) not in better
        )
    )


def _half_of_each_file(functions: Sequence[FunctionKey], rng: random.Random) -> set[FunctionKey]:
    """So that wherever a held-out test is real, another one beside it is not."""
    chosen: set[FunctionKey] = set()
    for file in sorted({file for file, _ in functions}):
        own = [function for function in functions if function[0] == file]
        chosen.update(rng.sample(own, (len(own) + rng.randrange(2)) // 2))
    return chosen


def _hidden(
    prepared: PreparedTask, submission: Submission, zygotes: ZygotePool, draws: tuple[DrawnTwins, DrawnTwins]
) -> tuple[HiddenPass, HiddenPass]:
    planned = [_plan(prepared, name, drawn) for name, drawn in zip("ab", draws, strict=True)]
    steps = [step for one in planned for step in one.steps]
    random.shuffle(steps)  # so that its place tells a process nothing
    report = run_processes(prepared, submission.sources, zygotes, prepared.loaded_task.suite, steps)
    first, other = (
        HiddenPass(parse_report(report, one.steps, "hidden"), one.real, one.twins, one.kinds, drawn)
        for one, drawn in zip(planned, draws, strict=True)
    )
    return first, other


def _visible_functions(prepared: PreparedTask, rng: random.Random) -> set[tuple[str, str]]:
    """The visible tests that get twins: all that the task turns green, and some of the others."""
    tests = prepared.loaded_task.task.tests
    chosen = {jobs.function_of(test) for test in tests.fail_to_pass}
    others = sorted({jobs.function_of(test) for test in tests.pass_to_pass} - chosen)
    return chosen | set(rng.sample(others, min(len(others), _MOST_PASSING_TWINS)))


@dataclass(frozen=True)
class _PlannedPass:
    steps: list[TestProcess]
    real: frozenset[str]
    twins: frozenset[str]
    kinds: dict[str, str]


def _plan(prepared: PreparedTask, name: str, drawn: DrawnTwins) -> _PlannedPass:
    """One pass: the held-out tests, real but for those that were drawn, and the twins of visible ones.

    Functions with held-out tests run with all their cases, whatever was drawn, so that the choice of cases tells
    nothing.
    """
    twins = expected_failures(prepared.plan, drawn)
    held = _held(prepared)
    tests = prepared.loaded_task.task.tests
    real = {test for test in tests.every if jobs.function_of(test) in held and test not in twins}
    order = [test for test in tests.every if test in real or test in twins]
    kinds = {test: drawn[jobs.function_of(test)].kind for test in twins}
    suite = mutate_suite(prepared.loaded_task.suite, drawn)
    return _PlannedPass(
        jobs.plan_processes(name, suite, order, prepared.file_seconds, blank=prepared.blank),
        frozenset(real),
        frozenset(twins),
        kinds,
    )
