"""The registered grid: each run is a valid configuration, and arms of a regime differ by the arm alone."""

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from evidence_grid import Grid, Job, as_changes  # noqa: E402
from gametape.train.config_file import read_config  # noqa: E402

FILES = ("evidence.toml", "evidence-tiny.toml")


def jobs_of(file: str) -> list[Job]:
    grid = Grid.read(ROOT / "configs" / file)
    cells = grid.cells(dict.fromkeys(grid.regimes, 10**12))
    return [*grid.warm_jobs(), *grid.pilot_jobs(), *cells]


@pytest.mark.parametrize("file", FILES)
def test_every_run_is_a_valid_configuration(file: str) -> None:
    for job in jobs_of(file):
        given = {key: str(job.settings[key]) for key in ("tasks", "arm")} | {"model": "smollm2", "seed": job.seed}
        rest = {key: value for key, value in job.settings.items() if key not in ("tasks", "arm", "model")}
        config = read_config(None, as_changes(rest), given)
        assert config.seed == job.seed


@pytest.mark.parametrize("file", FILES)
def test_arms_of_a_regime_have_one_budget_and_one_start(file: str) -> None:
    jobs = [job for job in jobs_of(file) if job.kind == "cell"]
    assert len({job.name for job in jobs}) == len(jobs)
    for regime in {job.regime for job in jobs}:
        mine = [job for job in jobs if job.regime == regime]
        shared: list[dict[str, Any]] = [
            {key: job.settings[key] for key in ("flops", "episodes", "tasks", "eval.every")} for job in mine
        ]
        assert all(one == shared[0] for one in shared)
        assert {job.after for job in mine} == {mine[0].after}


def test_seeds_come_one_after_the_other_so_that_all_arms_have_the_same() -> None:
    jobs = [job for job in jobs_of("evidence.toml") if job.kind == "cell"]
    assert [job.seed for job in jobs] == sorted(job.seed for job in jobs)
    main = [job.arm for job in jobs if job.regime == "starved" and job.seed == 14]
    assert main == ["rlvr", "ttf", "resample", "opsd"]
