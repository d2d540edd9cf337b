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
from gametape.verify.attempt import Attempt
from gametape.verify.crew import Crew
from gametape.verify.observation import Run
from gametape.verify.observe import observe
from gametape.verify.preparation import Prepared, run_steps
from gametape.verify.runner import Step
from gametape.verify.twins.plan import ABOUT_VALUES, Drawn, TwinPlan, draw, flipped, lay
from gametape.verify.twins.suite import Place

_MOST_PASSING_TWINS = 24
"""Of the tests that passed before the task was begun, so many get a twin: forging them gains nothing by itself."""


@dataclass(frozen=True)
class Pass:
    """One pass of the hidden sandbox: which tests were real in it, and which were twins."""

    run: Run
    real: frozenset[str]
    twins: frozenset[str]
    kinds: Mapping[str, str]
    """The kind of each twin, by the id of its test."""
    drawn: Drawn


@dataclass(frozen=True)
class SharedRuns:
    shown: Run
    hidden: tuple[Pass, Pass]
    second: Run | None
    contradictions: dict[str, str]
    """Tests that passed together with their own contradiction, and the kind of twin it was."""

    @classmethod
    def of(cls, shown: Run, hidden: tuple[Pass, Pass], second: Run | None) -> "SharedRuns":
        return cls(shown, hidden, second, contradictions(shown, hidden))

    @property
    def runs(self) -> tuple[Run, ...]:
        return (self.shown, *(one.run for one in self.hidden), *((self.second,) if self.second else ()))

    @property
    def real(self) -> tuple[Run, ...]:
        """The same without what became of twins."""
        return tuple(
            replace(run, outcomes={test: run.outcomes[test] for test in run.outcomes if test not in twins})
            for run, twins in zip(self.runs, (set(), *(one.twins for one in self.hidden), set()), strict=False)
        )

    @property
    def unrefuted(self) -> set[str]:
        """Tests with a twin that did not fail: whatever they did, it is not known to have been a pass."""
        return {test for one in self.hidden for test in one.twins if one.run.result(test) != "failed"}

    @property
    def odd(self) -> bool:
        """Whether a twin that expects another value passed. Wrong solutions hardly ever do that, forgers cannot but."""
        return any(
            one.kinds[test] in ABOUT_VALUES and one.run.result(test) == "passed"
            for one in self.hidden
            for test in one.twins
        )

    def agrees(self, other: "SharedRuns") -> bool:
        """Whether every test and twin did the same in both."""
        return all(
            mine.result(test) == theirs.result(test)
            for mine, theirs in zip(self.runs, other.runs, strict=False)
            for test in mine.outcomes
        )

    def really_passed(self, test: str) -> bool:
        found = [run.result(test) for run in self.real if test in run.outcomes]
        return bool(found) and all(result == "passed" for result in found)


def run_shared(
    prepared: Prepared, attempt: Attempt, crew: Crew, rng: random.Random, second_order: bool = False
) -> SharedRuns:
    """Run the tests of a shared task."""
    draws = _draws(prepared, rng)
    other = random.Random(rng.randrange(1 << 60))
    with ThreadPoolExecutor(3) as threads:
        shown = threads.submit(_shown, prepared, attempt, crew)
        hidden = threads.submit(_hidden, prepared, attempt, crew, draws)
        second = threads.submit(_second, prepared, attempt, crew, other) if second_order else None
        return SharedRuns.of(shown.result(), hidden.result(), second.result() if second else None)


def run_again(prepared: Prepared, attempt: Attempt, crew: Crew, runs: SharedRuns) -> SharedRuns:
    """The same once more, with the same twins. Nothing inside can tell that it is not the first time."""
    with ThreadPoolExecutor(2) as threads:
        shown = threads.submit(_shown, prepared, attempt, crew)
        hidden = threads.submit(_hidden, prepared, attempt, crew, (runs.hidden[0].drawn, runs.hidden[1].drawn))
        return SharedRuns.of(shown.result(), hidden.result(), None)


def contradictions(shown: Run, passes: tuple[Pass, Pass]) -> dict[str, str]:
    """A test and its twin cannot both pass: where they do, somebody else said so."""
    passed = {test for test in shown.outcomes if shown.result(test) == "passed"}
    passed |= {test for one in passes for test in one.real if one.run.result(test) == "passed"}
    return {
        test: one.kinds[test]
        for one in passes
        for test in sorted(one.twins)
        if test in passed and one.run.result(test) == "passed"
    }


def _shown(prepared: Prepared, attempt: Attempt, crew: Crew) -> Run:
    suite = jobs.visible_tests(prepared.subject)
    steps = jobs.steps("shown", suite, prepared.subject.task.tests.visible, prepared.seconds, messages=True)
    return observe(run_steps(prepared, attempt.sources, crew, suite, steps), steps)


def _second(prepared: Prepared, attempt: Attempt, crew: Crew, rng: random.Random) -> Run:
    suite, every = prepared.subject.suite, prepared.subject.task.tests.every
    trace = jobs.written_python(attempt)
    steps = jobs.steps("second", suite, every, prepared.seconds, shuffle=rng, trace=trace, blank=prepared.blank)
    return observe(run_steps(prepared, attempt.sources, crew, suite, steps), steps, "shuffled")


def _draws(prepared: Prepared, rng: random.Random) -> tuple[Drawn, Drawn]:
    """The twins of both passes. Each visible test has one in both, of different kinds. Each held-out test has one in
    either, and one that reads like a test: nobody has seen its text, so its form must not tell. A function with some
    held-out cases is treated like a held-out one: they have to be real in one of the passes."""
    held = sorted(_held(prepared))
    heads = _half_of_each_file(held, rng)
    visible = _visible_functions(prepared, rng) - set(held)
    about_values = {function for function in sorted(visible) if rng.random() < 0.5}
    plan = _unseen(prepared)
    first = draw(plan, [*sorted(visible), *sorted(set(held) - heads)], rng, about_values, held)
    return first, draw(plan, [*sorted(visible), *sorted(heads)], rng, visible - about_values, held)


def _held(prepared: Prepared) -> set[Place]:
    return {jobs.function_of(test) for test in prepared.subject.task.tests.held_out}


def _unseen(prepared: Prepared) -> TwinPlan:
    """The plan without twins that give themselves away: of a function with visible cases the agent knows the text, so
    wherever a held-out case can be turned by itself, nothing else is."""
    tests = prepared.subject.task.tests
    mixed = _held(prepared) & {jobs.function_of(test) for test in tests.visible}
    held_out = set(tests.held_out)
    quiet = {each for each in prepared.plan.validated if each.twin.case is not None and held_out.issuperset(each.flips)}
    better = {(each.file, each.twin.function) for each in quiet} & mixed
    return TwinPlan(
        tuple(
            each for each in prepared.plan.validated if each in quiet or (each.file, each.twin.function) not in better
        )
    )


def _half_of_each_file(functions: Sequence[Place], rng: random.Random) -> set[Place]:
    """So that wherever a held-out test is real, another one beside it is not."""
    chosen: set[Place] = set()
    for file in sorted({file for file, _ in functions}):
        own = [function for function in functions if function[0] == file]
        chosen.update(rng.sample(own, (len(own) + rng.randrange(2)) // 2))
    return chosen


def _hidden(prepared: Prepared, attempt: Attempt, crew: Crew, draws: tuple[Drawn, Drawn]) -> tuple[Pass, Pass]:
    planned = [_plan(prepared, name, drawn) for name, drawn in zip("ab", draws, strict=True)]
    steps = [step for one in planned for step in one.steps]
    random.shuffle(steps)  # so that its place tells a process nothing
    report = run_steps(prepared, attempt.sources, crew, prepared.subject.suite, steps)
    first, other = (
        Pass(observe(report, one.steps, "hidden"), one.real, one.twins, one.kinds, drawn)
        for one, drawn in zip(planned, draws, strict=True)
    )
    return first, other


def _visible_functions(prepared: Prepared, rng: random.Random) -> set[tuple[str, str]]:
    """The visible tests that get twins: all that the task turns green, and some of the others."""
    tests = prepared.subject.task.tests
    chosen = {jobs.function_of(test) for test in tests.fail_to_pass}
    others = sorted({jobs.function_of(test) for test in tests.pass_to_pass} - chosen)
    return chosen | set(rng.sample(others, min(len(others), _MOST_PASSING_TWINS)))


@dataclass(frozen=True)
class _Planned:
    steps: list[Step]
    real: frozenset[str]
    twins: frozenset[str]
    kinds: dict[str, str]


def _plan(prepared: Prepared, name: str, drawn: Drawn) -> _Planned:
    """One pass: the held-out tests, real but for those that were drawn, and the twins of visible ones.

    Functions with held-out tests run with all their cases, whatever was drawn, so that the choice of cases tells
    nothing.
    """
    twins = flipped(prepared.plan, drawn)
    held = _held(prepared)
    tests = prepared.subject.task.tests
    real = {test for test in tests.every if jobs.function_of(test) in held and test not in twins}
    order = [test for test in tests.every if test in real or test in twins]
    kinds = {test: drawn[jobs.function_of(test)].kind for test in twins}
    suite = lay(prepared.subject.suite, drawn)
    return _Planned(
        jobs.steps(name, suite, order, prepared.seconds, blank=prepared.blank),
        frozenset(real),
        frozenset(twins),
        kinds,
    )
