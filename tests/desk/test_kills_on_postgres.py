"""As `test_kills.py`, with PostgreSQL as the desk's database; a file of its own, because both take long."""

from pathlib import Path

import pytest

from tests.desk.kill_bench import check, kill_often, set_up
from tests.desk.postgres import running_postgres


@pytest.mark.slow
def test_a_hundred_kills_on_postgres(tmp_path: Path) -> None:
    for seed in range(5):
        with running_postgres() as url:
            bench = set_up(tmp_path / str(seed), url, turns=12)
            kill_often(bench, kills=20, seed=seed)
            check(bench, turns=12)
