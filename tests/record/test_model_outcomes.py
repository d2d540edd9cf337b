"""The record of how attempts with each model ended, and the odds in it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gametape.record.model_outcomes import FILE, ModelOdds, ModelOutcome, measure_odds, record_outcomes


def outcome(key: str, passed: bool, model: str = "m", cost: float = 0.0) -> ModelOutcome:
    return ModelOutcome(key=key, model=model, passed=passed, cost_usd=cost)


def test_odds_start_even_and_move_with_outcomes(tmp_path: Path) -> None:
    assert measure_odds(tmp_path, "m") == ModelOdds()
    assert ModelOdds().p_success == 0.5
    record_outcomes(
        tmp_path, [outcome("a", True, cost=1.0), outcome("b", False, cost=3.0), outcome("x", True, "other")]
    )
    assert measure_odds(tmp_path, "m") == ModelOdds(attempts=2, passed=1, mean_cost_usd=2.0)
    record_outcomes(tmp_path, [outcome("c", False), outcome("d", False)])
    assert measure_odds(tmp_path, "m").p_success == 2 / 6


def test_an_attempt_that_is_recorded_again_counts_once(tmp_path: Path) -> None:
    for passed in (False, True):
        record_outcomes(tmp_path, [outcome("goal/1", passed)])
    assert measure_odds(tmp_path, "m") == ModelOdds(attempts=1, passed=1)


def test_damaged_lines_are_skipped(tmp_path: Path) -> None:
    record_outcomes(tmp_path, [outcome("a", True)])
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"model": "m"}\n[1]\n\xff\n{"key": 1, "model": "m", "passed": "yes"}\n{"key"')
    assert measure_odds(tmp_path, "m").attempts == 1


def test_a_home_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    record_outcomes(tmp_path / "file" / "home", [outcome("a", True)])
    assert measure_odds(tmp_path / "file" / "home", "m").attempts == 0


def test_writers_wait_for_each_other(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: record_outcomes(tmp_path, [outcome(str(n), True)]), range(40)))
    assert measure_odds(tmp_path, "m").attempts == 40
