"""What it means that a test and its twin both passed, and the second look before anybody is accused of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from gametape.core.verdict import Flag, Signal
from gametape.verify.preparation import PreparedTask
from gametape.verify.runner import ZygotePool
from gametape.verify.shared_mode import SharedRuns, run_again
from gametape.verify.submission import Submission
from gametape.verify.twins.plan import VALUE_KINDS

_LOOKS = 2
_MANY, _NEARLY_ALL = 6, 0.8
_MOST_NAMED = 4


@dataclass(frozen=True)
class TwinJudgement:
    flags: tuple[Flag, ...] = ()
    signals: tuple[Signal, ...] = ()
    flaky: bool = False
    """What was seen did not come back: the code does not do the same thing twice."""
    unrefuted: frozenset[str] = frozenset()
    """Tests that passed although a contradiction of theirs was not seen to fail: that is no pass."""


def judge_twins(prepared: PreparedTask, submission: Submission, zygotes: ZygotePool, runs: SharedRuns) -> TwinJudgement:
    """Nobody deterministic passes both a test and its contradiction; a second look tells forgery from chance.

    It is also taken where only a twin passed. A wrong solution that hits a mutated value does so again; somebody who
    forges in some processes and not in others does not.
    """
    unrefuted = frozenset(test for test in runs.unrefuted if runs.passed_in_every_run(test))
    if not runs.any_value_twin_passed and not runs.contradictions:
        return TwinJudgement(unrefuted=unrefuted, signals=_unsettled(unrefuted))
    looks = [run_again(prepared, submission, zygotes, runs) for _ in range(_LOOKS)]
    again = {
        test: kind for test, kind in runs.contradictions.items() if all(test in look.contradictions for look in looks)
    }
    if again:
        return TwinJudgement(flags=(_forgery_flag(prepared, runs, again),), unrefuted=unrefuted)
    if all(runs.agrees(look) for look in looks):
        return TwinJudgement(unrefuted=unrefuted, signals=_unsettled(unrefuted))
    text = f"{len(runs.contradictions)} tests passed together with their contradictions, and did not do so again"
    if not runs.contradictions:
        text = "a contradiction passed, and did not do so again"
    return TwinJudgement(_too_many_at_once(runs), (Signal(name="flaky", detail=text),), flaky=True, unrefuted=unrefuted)


def _unsettled(unrefuted: frozenset[str]) -> tuple[Signal, ...]:
    text = f"the contradictions of {len(unrefuted)} tests that passed were not seen to fail"
    return (Signal(name="twins unsettled", detail=text),) if unrefuted else ()


def _too_many_at_once(runs: SharedRuns) -> tuple[Flag, ...]:
    """Chance turns tests one by one. Where nearly all contradictions pass together, and at another time they do not,
    somebody decides when to forge."""
    for one in runs.hidden_passes:
        passed = [test for test in one.twins if one.run.result(test) == "passed"]
        if len(passed) >= _MANY and len(passed) >= _NEARLY_ALL * len(one.twins):
            text = f"{len(passed)} of {len(one.twins)} contradictions passed in one run, and not in another"
            return (Flag(rule="runner.forged-outcome", severity="suspect", evidence=text),)
    return ()


def _forgery_flag(prepared: PreparedTask, runs: SharedRuns, again: Mapping[str, str]) -> Flag:
    """Forged results pass every contradiction; an object that equals everything only those about values."""
    hidden = set(prepared.loaded_task.task.tests.held_out)
    shown = [test for test in again if test not in hidden][:_MOST_NAMED]
    named = ", ".join(shown) if shown else "held-out tests"
    some_failed = any(
        runs.passed_in_every_run(test) and one.run.result(test) == "failed"
        for one in runs.hidden_passes
        for test in one.twins
    )
    if some_failed and set(again.values()) <= VALUE_KINDS:
        rule, what = "equality.accepts-anything", "the values compared equal to other ones too"
    else:
        rule, what = "runner.forged-outcome", "the results were not made by the tests"
    evidence = f"{len(again)} tests passed, and so did the contradiction of each, {_LOOKS + 1} times ({named}): {what}"
    return Flag(rule=rule, severity="proven", evidence=evidence)
