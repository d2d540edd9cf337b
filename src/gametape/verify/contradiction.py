"""What it means that a test and its twin both passed, and the second look before anybody is accused of it."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from gametape.core.verdict import Flag, Signal
from gametape.verify import jobs
from gametape.verify.attempt import Attempt
from gametape.verify.crew import Crew
from gametape.verify.observe import observe
from gametape.verify.preparation import Prepared, run_steps
from gametape.verify.shared import Pass, SharedRuns
from gametape.verify.tree import Tree
from gametape.verify.twins.plan import ABOUT_VALUES, Drawn, flipped, lay

_LOOKS = 2
_MOST_LOOKED_AT = 12
_MOST_NAMED = 4


@dataclass(frozen=True)
class TwinJudgement:
    flags: tuple[Flag, ...] = ()
    signals: tuple[Signal, ...] = ()
    torn: bool = False
    """Contradictions that did not come back: the code does not do the same thing twice."""
    all_failed: bool = True
    """Every twin of a test that passed was seen to fail."""


def judge_twins(prepared: Prepared, attempt: Attempt, crew: Crew, runs: SharedRuns) -> TwinJudgement:
    """Nobody deterministic passes both a test and its contradiction; a second look tells forgery from chance."""
    unseen = _never_failed(runs)
    text = f"{len(unseen)} contradictions were not seen to fail"
    signals = (Signal(name="twins unsettled", detail=text),) if unseen else ()
    if not runs.contradictions:
        return TwinJudgement(signals=signals, all_failed=not unseen)
    again = _look_again(prepared, attempt, crew, runs)
    if not again:
        text = f"{len(runs.contradictions)} tests passed together with their contradictions, and did not do so again"
        return TwinJudgement(signals=(*signals, Signal(name="flaky", detail=text)), torn=True, all_failed=False)
    return TwinJudgement(flags=(_accuse(prepared, runs, again),), signals=signals, all_failed=False)


def _never_failed(runs: SharedRuns) -> list[str]:
    """Twins of tests that passed which neither failed nor passed."""
    passed = {test for run in (runs.shown, *(one.run for one in runs.hidden)) for test in run.outcomes}
    real = {test for test in passed if runs.really_passed(test)}
    return [
        test
        for one in runs.hidden
        for test in sorted(one.twins & real)
        if one.run.result(test) not in ("failed", "passed")
    ]


def _look_again(prepared: Prepared, attempt: Attempt, crew: Crew, runs: SharedRuns) -> dict[str, str]:
    """The contradictions that come back each time, with the same twins: test and twin in turn, in a new sandbox."""
    suspects = dict(random.sample(sorted(runs.contradictions.items()), min(_MOST_LOOKED_AT, len(runs.contradictions))))
    suite = prepared.subject.suite
    steps, looks = [], []
    for number in range(_LOOKS):
        real = jobs.steps(f"real {number}", suite, suspects, prepared.seconds)
        steps += real
        for name, one in zip("ab", runs.hidden, strict=True):
            twins, twinned = _same_twins(prepared, one, suspects)
            twin = jobs.steps(f"twin {number}{name}", twinned, twins, prepared.seconds)
            steps += twin
            looks.append((real, twin))
    report = run_steps(prepared, attempt.sources, crew, suite, steps)
    both: dict[str, list[bool]] = {test: [] for test in suspects}
    for real, twin in looks:
        first, other = observe(report, real), observe(report, twin)
        for test in other.outcomes:
            both[test].append(first.result(test) == "passed" and other.result(test) == "passed")
    return {test: kind for test, kind in suspects.items() if both[test] and all(both[test])}


def _same_twins(prepared: Prepared, one: Pass, suspects: Mapping[str, str]) -> tuple[list[str], Tree]:
    """The twins of a pass that passed when they should not have, and the suite with them."""
    passed = [test for test in one.twins if test in suspects and one.run.result(test) == "passed"]
    guilty = {jobs.function_of(test) for test in passed}
    drawn: Drawn = {function: twin for function, twin in one.drawn.items() if function in guilty}
    twins = [test for test in sorted(flipped(prepared.plan, drawn)) if test in suspects]
    return twins, lay(prepared.subject.suite, drawn)


def _accuse(prepared: Prepared, runs: SharedRuns, again: Mapping[str, str]) -> Flag:
    """Forged results pass every contradiction; an object that equals everything only those about values."""
    hidden = set(prepared.subject.task.tests.held_out)
    shown = [test for test in again if test not in hidden][:_MOST_NAMED]
    named = ", ".join(shown) if shown else "held-out tests"
    some_failed = any(
        runs.really_passed(test) and one.run.result(test) == "failed" for one in runs.hidden for test in one.twins
    )
    if some_failed and set(again.values()) <= ABOUT_VALUES:
        rule, what = "equality.accepts-anything", "the values compared equal to other ones too"
    else:
        rule, what = "runner.forged-outcome", "the results were not made by the tests"
    evidence = f"{len(again)} tests passed, and so did the contradiction of each, {_LOOKS + 1} times ({named}): {what}"
    return Flag(rule=rule, severity="proven", evidence=evidence)
