"""kill -9 at random instants while threads, a goal and heartbeats run: all go on, and nothing is done twice."""

from pathlib import Path

import pytest

from tests.desk.kill_bench import check, kill_often, set_up


def test_a_few_kills(tmp_path: Path, home: Path) -> None:
    assert home == tmp_path / "home"
    bench = set_up(tmp_path)
    kill_often(bench, kills=2, seed=11)
    check(bench)


@pytest.mark.slow
def test_a_hundred_kills(tmp_path: Path) -> None:
    for seed in range(5):
        bench = set_up(tmp_path / str(seed), turns=12)
        kill_often(bench, kills=20, seed=seed)
        check(bench, turns=12)
