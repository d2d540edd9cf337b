"""Shared mode: tests and code run in one process, which can forge its own results, so twins have to expose forgery.

Two sandboxes run at once. The *visible* one runs the visible tests as written; an agent may see its messages. The
*hidden* one runs two passes over held-out tests and twins. A twin replaces its test under the same name and asserts the
contradiction: no deterministic code passes both. In each pass a coin decides which held-out tests are real, so code
that forges results must guess, and one wrong guess is a contradiction. In both sandboxes the files of the tests are
empty on disk, so that a process does not know which kind it is; the host puts the lines of tests into the messages.
"""

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from gametape.verify import jobs
from gametape.verify.machine_load import slowdown
from gametape.verify.preparation import PreparedTask, run_processes
from gametape.verify.runner import JobReport, TestProcess, ZygotePool
from gametape.verify.source_lines import with_source_lines
from gametape.verify.submission import Submission
from gametape.verify.twins.plan import (
    VALUE_KINDS,
    DrawnTwins,
    TwinPlan,
    ValidatedTwin,
    draw_twins,
    expected_failures,
    id_inside,
    mutate_suite,
)
from gametape.verify.twins.suite_twins import FunctionKey
from gametape.verify.verifier_run import VerifierRun, parse_report

_MOST_PASSING_TWINS = 24
"""How many of the tests that the starting tree passes get a twin: forging them alone gains nothing."""


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
    """Every run of a shared verdict. `shuffled_run` is made under the full profile only."""

    visible_run: VerifierRun
    hidden_passes: tuple[HiddenPass, HiddenPass]
    shuffled_run: VerifierRun | None
    contradictions: dict[str, str]
    """Tests that passed although their twin passed too, and the kind of the twin."""

    @classmethod
    def from_runs(
        cls,
        visible_run: VerifierRun,
        hidden_passes: tuple[HiddenPass, HiddenPass],
        shuffled_run: VerifierRun | None,
    ) -> "SharedRuns":
        return cls(visible_run, hidden_passes, shuffled_run, find_contradictions(visible_run, hidden_passes))

    @property
    def runs(self) -> tuple[VerifierRun, ...]:
        return (
            self.visible_run,
            *(hidden.run for hidden in self.hidden_passes),
            *((self.shuffled_run,) if self.shuffled_run else ()),
        )

    @property
    def real_runs(self) -> tuple[VerifierRun, ...]:
        """The runs without the results of twins."""
        return tuple(
            replace(run, outcomes={test: run.outcomes[test] for test in run.outcomes if test not in twins})
            for run, twins in zip(
                self.runs, (set(), *(hidden.twins for hidden in self.hidden_passes), set()), strict=False
            )
        )

    @property
    def unrefuted(self) -> set[str]:
        """Tests with a twin that did not fail. A pass of such a test proves nothing."""
        return {test for hidden in self.hidden_passes for test in hidden.twins if hidden.run.result(test) != "failed"}

    @property
    def any_value_twin_passed(self) -> bool:
        """Whether a twin that expects another value passed: forged results always do, wrong solutions rarely."""
        return any(
            hidden.kinds[test] in VALUE_KINDS and hidden.run.result(test) == "passed"
            for hidden in self.hidden_passes
            for test in hidden.twins
        )

    def agrees(self, other: "SharedRuns") -> bool:
        """Whether every test and twin has the same result in both."""
        return all(
            mine.result(test) == theirs.result(test)
            for mine, theirs in zip(self.runs, other.runs, strict=False)
            for test in mine.outcomes
        )

    def passed_in_every_run(self, test: str) -> bool:
        results = [run.result(test) for run in self.real_runs if test in run.outcomes]
        return bool(results) and all(result == "passed" for result in results)


def run_shared(
    prepared: PreparedTask, submission: Submission, zygotes: ZygotePool, rng: random.Random, second_order: bool = False
) -> SharedRuns:
    """Run the tests and twins of a shared task; with `second_order`, all tests once more in another order."""
    drawn_passes = _draw_passes(prepared, rng)
    shuffle = random.Random(rng.randrange(1 << 60))
    with ThreadPoolExecutor(3) as threads:
        visible = threads.submit(_run_visible, prepared, submission, zygotes)
        hidden = threads.submit(_run_hidden, prepared, submission, zygotes, drawn_passes)
        shuffled = threads.submit(_run_shuffled, prepared, submission, zygotes, shuffle) if second_order else None
        return SharedRuns.from_runs(visible.result(), hidden.result(), shuffled.result() if shuffled else None)


def run_again(prepared: PreparedTask, submission: Submission, zygotes: ZygotePool, runs: SharedRuns) -> SharedRuns:
    """The same runs once more, with the same twins. The code under test cannot tell them from the first ones."""
    with ThreadPoolExecutor(2) as threads:
        visible = threads.submit(_run_visible, prepared, submission, zygotes)
        hidden = threads.submit(
            _run_hidden, prepared, submission, zygotes, (runs.hidden_passes[0].drawn, runs.hidden_passes[1].drawn)
        )
        return SharedRuns.from_runs(visible.result(), hidden.result(), None)


def find_contradictions(visible_run: VerifierRun, passes: tuple[HiddenPass, HiddenPass]) -> dict[str, str]:
    """Tests that passed while their twin passed too, with the kind of the twin: the tests did not decide the result."""
    passed = {test for test in visible_run.outcomes if visible_run.result(test) == "passed"}
    passed |= {test for hidden in passes for test in hidden.real if hidden.run.result(test) == "passed"}
    return {
        test: hidden.kinds[test]
        for hidden in passes
        for test in sorted(hidden.twins)
        if test in passed and hidden.run.result(test) == "passed"
    }


def _file_seconds(prepared: PreparedTask) -> dict[str, float]:
    """How long each test file may take on the machine as it is now: a twin that timed out was not seen to fail."""
    busy = slowdown()
    return {file: busy * seconds for file, seconds in prepared.file_seconds.items()}


def _run_visible(prepared: PreparedTask, submission: Submission, zygotes: ZygotePool) -> VerifierRun:
    suite = jobs.visible_tests(prepared.loaded_task)
    processes = jobs.plan_processes(
        "visible",
        suite,
        prepared.loaded_task.task.tests.visible,
        _file_seconds(prepared),
        messages=True,
        blank=prepared.blank,
    )
    run = parse_report(run_processes(prepared, submission.sources, zygotes, suite, processes), processes)
    return replace(
        run,
        outcomes={
            test: replace(outcome, message=with_source_lines(outcome.message, suite))
            for test, outcome in run.outcomes.items()
        },
    )


def _run_shuffled(
    prepared: PreparedTask, submission: Submission, zygotes: ZygotePool, rng: random.Random
) -> VerifierRun:
    suite, every = prepared.loaded_task.suite, prepared.loaded_task.task.tests.every
    trace = jobs.changed_python_files(submission)
    processes = jobs.plan_processes(
        "shuffled", suite, every, _file_seconds(prepared), shuffle=rng, trace=trace, blank=prepared.blank
    )
    return parse_report(run_processes(prepared, submission.sources, zygotes, suite, processes), processes, "shuffled")


def _draw_passes(prepared: PreparedTask, rng: random.Random) -> tuple[DrawnTwins, DrawnTwins]:
    """Draw the twins of both passes. A visible test has one in both, of different kinds. A held-out test has one in one
    of them, and its form looks like a test, since the agent has not seen the text. A function with some held-out cases
    is treated as held out: its cases have to be real in one of the passes."""
    held = sorted(_held_out_functions(prepared))
    heads = _half_of_each_file(held, rng)
    visible = _visible_functions(prepared, rng) - set(held)
    about_values = {function for function in sorted(visible) if rng.random() < 0.5}
    plan = _inconspicuous_twins(prepared)
    first = draw_twins(plan, [*sorted(visible), *sorted(set(held) - heads)], rng, about_values, held)
    return first, draw_twins(plan, [*sorted(visible), *sorted(heads)], rng, visible - about_values, held)


def _held_out_functions(prepared: PreparedTask) -> set[FunctionKey]:
    return {jobs.function_of(test) for test in prepared.loaded_task.task.tests.held_out}


def _inconspicuous_twins(prepared: PreparedTask) -> TwinPlan:
    """The plan without twins that code could recognise. The agent knows the text of a function with visible cases, so
    where held-out cases can be mutated by themselves, nothing else of that function is."""
    tests = prepared.loaded_task.task.tests
    mixed = _held_out_functions(prepared) & {jobs.function_of(test) for test in tests.visible}
    held_out = set(tests.held_out)
    case_twins = [
        ValidatedTwin(valid.file, hidden, flips)
        for valid in prepared.plan.validated
        if valid.key in mixed
        and (flips := tuple(test for test in valid.flips if test in held_out))
        and (hidden := valid.twin.only(flips))
    ]
    replaced = {valid.key for valid in case_twins}
    return TwinPlan((*(valid for valid in prepared.plan.validated if valid.key not in replaced), *case_twins))


def _half_of_each_file(functions: Sequence[FunctionKey], rng: random.Random) -> set[FunctionKey]:
    """Half of the functions of each file, so that a real held-out test runs beside a twin."""
    half: set[FunctionKey] = set()
    for file in sorted({file for file, _ in functions}):
        own = [function for function in functions if function[0] == file]
        half.update(rng.sample(own, (len(own) + rng.randrange(2)) // 2))
    return half


def _run_hidden(
    prepared: PreparedTask, submission: Submission, zygotes: ZygotePool, drawn_passes: tuple[DrawnTwins, DrawnTwins]
) -> tuple[HiddenPass, HiddenPass]:
    planned = [_plan_pass(prepared, name, drawn) for name, drawn in zip("ab", drawn_passes, strict=True)]
    processes = [process for hidden in planned for process in hidden.processes]
    random.shuffle(processes)  # so that a process learns nothing from its position
    report = run_processes(prepared, submission.sources, zygotes, prepared.loaded_task.suite, processes)
    first, second = (
        HiddenPass(_parse_pass(report, hidden), hidden.real, hidden.twins, hidden.kinds, drawn)
        for hidden, drawn in zip(planned, drawn_passes, strict=True)
    )
    return first, second


def _parse_pass(report: JobReport, hidden: "_PlannedPass") -> VerifierRun:
    """The run of a pass, with the ids that the tests have in the task."""
    run = parse_report(report, hidden.processes, "hidden")
    return replace(
        run, outcomes={hidden.tests[one.id]: replace(one, id=hidden.tests[one.id]) for one in run.outcomes.values()}
    )


def _visible_functions(prepared: PreparedTask, rng: random.Random) -> set[tuple[str, str]]:
    """The visible tests that get twins: all that the starting tree fails, and some of the others."""
    tests = prepared.loaded_task.task.tests
    feature = {jobs.function_of(test) for test in tests.fail_to_pass}
    others = sorted({jobs.function_of(test) for test in tests.pass_to_pass} - feature)
    return feature | set(rng.sample(others, min(len(others), _MOST_PASSING_TWINS)))


@dataclass(frozen=True)
class _PlannedPass:
    processes: list[TestProcess]
    tests: dict[str, str]
    """The tests by their ids while the twins are applied."""
    real: frozenset[str]
    twins: frozenset[str]
    kinds: dict[str, str]


def _plan_pass(prepared: PreparedTask, name: str, drawn: DrawnTwins) -> _PlannedPass:
    """One pass: the held-out tests, real except those that were drawn as twins, and the twins of visible tests.

    Functions with held-out tests run with all their cases, whatever was drawn, so that the choice of cases reveals
    nothing.
    """
    twins = expected_failures(_inconspicuous_twins(prepared), drawn)
    held = _held_out_functions(prepared)
    tests = prepared.loaded_task.task.tests
    real = {test for test in tests.every if jobs.function_of(test) in held and test not in twins}
    inside = {id_inside(drawn, test): test for test in tests.every if test in real or test in twins}
    kinds = {test: drawn[jobs.function_of(test)].kind for test in twins}
    suite = mutate_suite(prepared.loaded_task.suite, drawn)
    return _PlannedPass(
        jobs.plan_processes(name, suite, inside, _file_seconds(prepared), blank=prepared.blank),
        inside,
        frozenset(real),
        frozenset(twins),
        kinds,
    )
