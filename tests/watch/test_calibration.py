"""Scores against hand-worked values, and a forecast that learns what there is to learn."""

import random
from typing import Any

import pytest

from gametape.core.trajectory import Trajectory
from gametape.watch.calibration import (
    ForecastAttempt,
    LogisticRegression,
    auroc,
    brier,
    brier_skill,
    cross_validated_forecasts,
    equal_mass_ece,
    forecast_attempt,
    forecasts_by_kind,
    score_forecasts,
)


def test_scores_of_four_forecasts() -> None:
    pairs = [(0.9, True), (0.8, True), (0.3, False), (0.6, False)]
    assert brier(pairs) == pytest.approx((0.01 + 0.04 + 0.09 + 0.36) / 4)
    assert brier_skill(pairs) == pytest.approx(1 - 0.125 / 0.25)
    assert auroc(pairs) == 1.0
    assert auroc([(0.5, True), (0.5, False), (0.5, False)]) == 0.5
    assert auroc([(0.2, True), (0.7, False)]) == 0.0
    assert equal_mass_ece([(0.7, True)] * 70 + [(0.7, False)] * 30) >= 0.0


def test_equal_forecasts_are_one_value_whatever_their_order() -> None:
    """200 forecasts of .7 that came true as often: sorted by outcome, bins cut by position see an error of .42."""
    pairs = [(0.7, True)] * 140 + [(0.7, False)] * 60
    assert equal_mass_ece(pairs) == pytest.approx(0.0, abs=1e-12)
    assert equal_mass_ece([(0.7, True)] * 100 + [(0.7, False)] * 100) == pytest.approx(0.2)
    spread = [(number / 10, number % 3 == 0) for number in range(10)]
    assert equal_mass_ece(spread) == pytest.approx(sum(abs(p - happened) for p, happened in spread) / 10)


@pytest.mark.parametrize("n", [1, 7, 23, 200])
def test_no_score_depends_on_the_order_of_the_files(n: int) -> None:
    rng = random.Random(3)
    attempts = [
        ForecastAttempt(f"t{at % 9}", rng.random() < 0.6, (rng.random(), at % 3), rng.choice((0.2, 0.7)), rng.random())
        for at in range(n)
    ]
    scores = {kind: score_forecasts(pairs) for kind, pairs in forecasts_by_kind(attempts).items() if pairs}
    for _ in range(2):
        rng.shuffle(attempts)
        shuffled = {kind: score_forecasts(pairs) for kind, pairs in forecasts_by_kind(attempts).items() if pairs}
        assert shuffled == scores


def test_where_everything_came_out_the_same_there_is_nothing_to_tell_apart() -> None:
    found = score_forecasts([(0.4, True), (0.9, True)])
    assert (found.skill, found.auroc, found.base_rate) == (None, None, 1.0)


def test_a_perfect_forecaster_shows_an_error_and_is_told_so() -> None:
    rng = random.Random(0)
    forecasts = [rng.random() for _ in range(100)]
    found = score_forecasts([(p, rng.random() < p) for p in forecasts])
    assert 0.06 < found.ece_if_perfect < 0.15
    assert found.ece.low <= found.ece.value <= found.ece.high
    assert found.ece.value < 2 * found.ece_if_perfect
    boastful = score_forecasts([(min(1.0, p + 0.4), rng.random() < p) for p in forecasts])
    assert boastful.ece.low > boastful.ece_if_perfect


def test_a_regression_finds_the_weights_it_was_drawn_from() -> None:
    rng = random.Random(1)
    rows = [(rng.gauss(5, 2), rng.gauss(0, 1)) for _ in range(3000)]
    outcomes = [rng.random() < 1 / (1 + 2.718281828 ** -(row[0] - 5)) for row in rows]
    model = LogisticRegression.fitted(rows, outcomes)
    assert model.forecast((5, 0)) == pytest.approx(0.5, abs=0.05)
    assert model.forecast((7, 0)) == pytest.approx(0.88, abs=0.04)
    assert model.forecast((7, 3)) == pytest.approx(0.88, abs=0.08)


def test_an_attempt_is_judged_by_attempts_at_other_tasks() -> None:
    """What only tells tasks apart is of no use: a leak would show as skill."""
    rng = random.Random(2)
    attempts = []
    for task in range(40):
        luck, mark = rng.random() < 0.5, rng.random()
        attempts += [ForecastAttempt(f"t{task}", luck, (mark,)) for _ in range(5)]
    pairs = forecasts_by_kind(attempts)["calibrated"]
    assert (brier_skill(pairs) or 0.0) < 0.05
    assert (
        cross_validated_forecasts([ForecastAttempt("one", True, (0.0,)), ForecastAttempt("one", False, (1.0,))]) is None
    )


def test_what_an_agent_said_is_read_from_its_trajectory() -> None:
    turn: dict[str, Any] = {"step_id": 1, "source": "agent", "message": "", "tool_calls": []}
    agent = {"name": "a", "version": "1"}
    extra = {"outcome": "passed", "task": "t", "confidence": {"before": 0.3, "after": 2}}
    document = {"schema_version": "ATIF-v1.7", "agent": agent, "steps": [turn], "extra": extra}
    attempt = forecast_attempt(Trajectory.model_validate(document))
    assert attempt is not None
    assert (attempt.task, attempt.passed, attempt.before, attempt.after) == ("t", True, 0.3, None)
    assert forecast_attempt(Trajectory.model_validate(document | {"extra": {}})) is None


def test_what_an_agent_gives_finish_is_what_it_said_after() -> None:
    calls = [
        {"tool_call_id": f"c{at}", "function_name": "finish", "arguments": {"confidence": said}}
        for at, said in enumerate((2, 0.7))
    ]
    turn: dict[str, Any] = {"step_id": 1, "source": "agent", "message": "", "tool_calls": calls}
    document: dict[str, Any] = {"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": [turn]}
    attempt = forecast_attempt(Trajectory.model_validate(document | {"extra": {"outcome": "failed"}}))
    assert attempt is not None
    assert (attempt.before, attempt.after) == (None, 0.7)
