"""Where attempts are said to have gone wrong, from marks, from stages and from the record alone."""

from typing import Any

import pytest

from gametape.evals.attempt import AttemptTurn, EvalAttempt
from gametape.evals.mistakes import breaches_by_step, derailed_at, error_cascades, recovery_rate, survival_observation
from gametape.evals.report import cost_per_success

OK, BAD = AttemptTurn(correct=True), AttemptTurn(correct=False)


def attempt(*turns: AttemptTurn, passed: bool | None = False, **more: Any) -> EvalAttempt:
    return EvalAttempt(task="t", outcome="passed" if passed else "failed", passed=passed, turns=turns, **more)


def called(tool: str, what: str, failed: bool = False) -> AttemptTurn:
    return AttemptTurn(failed=failed, tools=(tool,), done=() if failed else (f"{tool} {what}",))


def test_the_judge_says_which_turn_was_wrong() -> None:
    assert derailed_at(attempt(OK, BAD, OK, BAD)) == 2
    assert derailed_at(attempt(OK, OK, OK)) == 3  # it ran out of turns
    assert derailed_at(attempt(OK, BAD, passed=True)) is None
    assert derailed_at(attempt(BAD, passed=None)) is None


def test_in_stages_a_step_is_a_stage() -> None:
    lost = attempt(BAD, stages=(True, True, False, True))
    assert derailed_at(lost) == 3
    kept = survival_observation(attempt(OK, passed=True, stages=(True,) * 4))
    assert kept is not None
    assert (kept.step, kept.derailed) == (4, False)


def test_without_a_judge_a_failure_that_was_never_made_up_for_counts() -> None:
    wrong, right = called("edit", "a", failed=True), called("edit", "b")
    assert derailed_at(attempt(called("read", "x"), wrong, called("read", "y"))) == 2
    assert derailed_at(attempt(wrong, right, called("shell", "z", failed=True), called("finish", "f"))) == 3
    silent = AttemptTurn(failed=True)
    assert derailed_at(attempt(silent, called("read", "x"), silent)) == 3


def test_without_failures_it_is_lost_where_nothing_new_comes() -> None:
    again = called("shell", "ls")
    assert derailed_at(attempt(called("read", "x"), again, again, again)) == 3
    assert derailed_at(attempt(called("read", "x"), called("finish", "f"))) == 2
    assert derailed_at(attempt()) == 1


def test_recovery_is_passing_in_spite_of_a_mistake() -> None:
    every = [attempt(OK, BAD, OK, passed=True), attempt(BAD), attempt(BAD, BAD), attempt(OK, passed=True)]
    assert recovery_rate([*every, attempt(BAD, passed=None)]) == pytest.approx(1 / 3)
    assert recovery_rate([attempt(OK, passed=True)]) is None


def test_cascades_count_what_follows_the_first_mistake() -> None:
    found = error_cascades([attempt(OK, BAD, BAD, OK, BAD), attempt(OK, OK, passed=True)])
    assert (found.attempts, found.follow_on, found.longest) == (1, 2.0, 2)
    assert found.rate_before == pytest.approx(1 / 4)
    assert found.rate_after == pytest.approx(2 / 3)


def test_breaches_are_counted_by_turn() -> None:
    assert breaches_by_step(
        [attempt(OK, AttemptTurn(breaches=2)), attempt(AttemptTurn(breaches=1), AttemptTurn(breaches=1))]
    ) == {
        1: 1,
        2: 3,
    }


def test_a_success_pays_for_the_failures() -> None:
    spent = {"tokens": 100, "cost_usd": 0.5, "seconds": 2.0}
    cost = cost_per_success([attempt(passed=True, **spent), attempt(**spent), attempt(passed=None, **spent)])
    assert (cost.tokens, cost.usd, cost.seconds) == (300.0, 1.5, 6.0)
    assert cost.spent_on_failures == pytest.approx(2 / 3)
    assert cost_per_success([attempt(**spent)]).tokens is None
    assert cost_per_success([]).spent_on_failures is None
