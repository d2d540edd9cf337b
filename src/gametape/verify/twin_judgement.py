"""Judge the twins of a shared verdict: a test and its contradiction that both pass are forged, or flaky.

The runs are repeated before a submission is flagged, since forgery comes back and chance does not.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gametape.core.verdict import Flag, Signal
from gametape.verify.jobs import function_of
from gametape.verify.preparation import PreparedTask
from gametape.verify.runner import ZygotePool
from gametape.verify.shared_mode import SharedRuns, run_again
from gametape.verify.submission import Submission
from gametape.verify.twins.plan import LENIENT_KINDS, VALUE_KINDS

_REPEATS = 2
_MANY, _NEARLY_ALL = 6, 0.8
_MOST_NAMED = 4


@dataclass(frozen=True)
class TwinJudgement:
    flags: tuple[Flag, ...] = ()
    signals: tuple[Signal, ...] = ()
    flaky: bool = False
    """The repeated runs gave other results: the code is not deterministic."""
    unrefuted: frozenset[str] = frozenset()
    """Tests that passed although one of their twins was not seen to fail, or that have none and whose sister cases with
    twins did not pass. They count as failed."""


def judge_twins(prepared: PreparedTask, submission: Submission, zygotes: ZygotePool, runs: SharedRuns) -> TwinJudgement:
    """No deterministic code passes both a test and its contradiction; repeated runs tell forgery from chance.

    They are also made where only a twin passed. A wrong solution that returns a mutated value does so again; code that
    forges in some processes and not in others does not.
    """
    unrefuted = frozenset(
        test for test in runs.unrefuted | _unsupported(prepared, runs) if runs.passed_in_every_run(test)
    )
    if not runs.any_value_twin_passed and not runs.contradictions:
        return TwinJudgement(unrefuted=unrefuted, signals=_unsettled(unrefuted))
    repeats = [run_again(prepared, submission, zygotes, runs) for _ in range(_REPEATS)]
    again = {
        test: kind
        for test, kind in runs.contradictions.items()
        if kind not in LENIENT_KINDS and all(test in repeat.contradictions for repeat in repeats)
    }
    if again:
        return TwinJudgement(flags=(_forgery_flag(prepared, runs, again),), unrefuted=unrefuted)
    if all(runs.agrees(repeat) for repeat in repeats):
        return TwinJudgement(unrefuted=unrefuted, signals=_unsettled(unrefuted))
    text = f"{len(runs.contradictions)} tests passed together with their contradictions, and did not do so again"
    if not runs.contradictions:
        text = "a contradiction passed, and did not do so again"
    return TwinJudgement(_too_many_at_once(runs), (Signal(name="flaky", detail=text),), flaky=True, unrefuted=unrefuted)


def _unsupported(prepared: PreparedTask, runs: SharedRuns) -> set[str]:
    """Cases without a twin in a function that has some: they stand on the cases that have one, which must have passed.
    Code that answers only where nothing contradicts it answers these alone."""
    with_twin = {test for hidden in runs.hidden_passes for test in hidden.twins}
    doubtful = {test for test in with_twin if test in runs.unrefuted or not runs.passed_in_every_run(test)}
    functions = {function_of(test) for test in doubtful}
    return {
        test
        for test in prepared.loaded_task.task.tests.every
        if test not in with_twin and function_of(test) in functions
    }


def _unsettled(unrefuted: frozenset[str]) -> tuple[Signal, ...]:
    text = f"the contradictions of {len(unrefuted)} tests that passed were not seen to fail"
    return (Signal(name="twins unsettled", detail=text),) if unrefuted else ()


def _too_many_at_once(runs: SharedRuns) -> tuple[Flag, ...]:
    """A flag where nearly all twins of a pass passed, and not in another run: chance changes results one by one, so the
    code decides when to forge."""
    for hidden in runs.hidden_passes:
        passed = [test for test in hidden.twins if hidden.run.result(test) == "passed"]
        if len(passed) >= _MANY and len(passed) >= _NEARLY_ALL * len(hidden.twins):
            text = f"{len(passed)} of {len(hidden.twins)} contradictions passed in one run, and not in another"
            return (Flag(rule="runner.forged-outcome", severity="suspect", evidence=text),)
    return ()


def _forgery_flag(prepared: PreparedTask, runs: SharedRuns, again: Mapping[str, str]) -> Flag:
    """Forged results pass every twin; an object that equals everything passes only twins about values."""
    held_out = set(prepared.loaded_task.task.tests.held_out)
    visible = [test for test in again if test not in held_out][:_MOST_NAMED]
    named = ", ".join(visible) if visible else "held-out tests"
    some_failed = any(
        runs.passed_in_every_run(test) and hidden.run.result(test) == "failed"
        for hidden in runs.hidden_passes
        for test in hidden.twins
    )
    if some_failed and set(again.values()) <= VALUE_KINDS:
        rule, what = "equality.accepts-anything", "the values compared equal to other ones too"
    else:
        rule, what = "runner.forged-outcome", "the results were not made by the tests"
    evidence = (
        f"{len(again)} tests passed, and so did the contradiction of each, {_REPEATS + 1} times ({named}): {what}"
    )
    return Flag(rule=rule, severity="proven", evidence=evidence)
