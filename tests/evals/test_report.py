"""A report covers the attempts with a known outcome, and says what it leaves out."""

import json

import pytest

from gametape.evals.attempt import AttemptTurn, EvalAttempt
from gametape.evals.report import build_report


def attempts(task: str, outcomes: str, horizon: int = 4) -> list[EvalAttempt]:
    """`+` passed, `-` failed at turn 2, `?` broken off."""
    turns = {"+": (True,) * 4, "-": (True, False, True, True), "?": ()}
    return [
        EvalAttempt(
            task=task,
            bucket=f"h{horizon}",
            horizon=horizon,
            number=number,
            outcome="passed" if sign == "+" else "failed",
            passed={"+": True, "-": False, "?": None}[sign],
            turns=tuple(AttemptTurn(correct=correct, load_bearing=at == 1) for at, correct in enumerate(turns[sign])),
            tokens=10,
        )
        for number, sign in enumerate(outcomes)
    ]


def test_estimates_are_means_over_tasks() -> None:
    report = build_report([*attempts("a", "++--"), *attempts("b", "+---")], n=4, k=2)
    assert report["pass_at_k"] == pytest.approx((5 / 6 + 1 / 2) / 2, abs=1e-6)
    assert report["pass_hat_k"] == pytest.approx((1 / 6 + 0) / 2, abs=1e-6)
    assert (report["n"], report["k"], report["tasks"], report["attempts"]) == (4, 2, 2, 8)
    assert report["success"]["rate"] == pytest.approx(3 / 8)
    assert report["runs"] == {"mean": pytest.approx(3 / 8), "min": 0.0}
    assert report["first_derailed_step"] == 2
    assert report["derailed_steps"] == {"2": 5}
    assert report["accuracy"] == {"load_bearing": pytest.approx(3 / 8), "other": 1.0}
    assert [(point["step"], point["s"]) for point in report["survival"]] == [
        (1, 1.0),
        (2, 0.375),
        (3, 0.375),
        (4, 0.375),
    ]
    assert all(point["low"] <= point["s"] <= point["high"] for point in report["survival"])
    assert report["cost_per_success"]["tokens"] == pytest.approx(80 / 3, abs=1e-6)
    json.dumps(report, allow_nan=False)


def test_what_was_broken_off_counts_as_neither() -> None:
    report = build_report([*attempts("a", "+?"), *attempts("b", "++"), *attempts("c", "??")], n=2, k=2)
    assert (report["errors"], report["success"]["n"], report["tasks"]) == (3, 3, 3)
    assert report["pass_at_k"] == 1.0  # of b alone: the others have fewer than two
    assert report["cost_per_success"]["spent_on_failures"] == pytest.approx(0.5)


def test_horizons_are_told_apart() -> None:
    report = build_report([*attempts("a", "+-", 4), *attempts("b", "--", 16)], n=2, k=1)
    assert [(row["horizon"], row["n"], row["passed"]) for row in report["by_horizon"]] == [(4, 2, 1), (16, 2, 0)]
    assert report["by_horizon"][1]["high"] < 0.7


def test_there_may_be_nothing_to_report() -> None:
    report = build_report(attempts("a", "?"), n=1, k=1)
    assert (report["pass_at_k"], report["survival"], report["first_derailed_step"]) == (None, [], None)
