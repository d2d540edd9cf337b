"""Learning rates over a run."""

import pytest

from gametape.train.optim.schedules import schedule_factor


def factors(schedule, steps, **rest):
    return [schedule_factor(schedule, step, steps, **rest) for step in range(steps + 2)]


def test_each_schedule():
    assert factors("constant", 3) == [1, 1, 1, 1, 1]
    assert factors("constant", 3, warmup=1) == [0.5, 1, 1, 1, 1]
    assert factors("linear", 4) == [1, 0.75, 0.5, 0.25, 0, 0]
    assert factors("linear", 6, warmup=2, floor=0.2) == pytest.approx([1 / 3, 2 / 3, 1, 0.8, 0.6, 0.4, 0.2, 0.2])
    assert factors("cosine", 4, floor=0.5) == pytest.approx(
        [1, 0.5 + 0.5 * 0.853553, 0.75, 0.573223, 0.5, 0.5], abs=1e-5
    )


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_no_step_of_a_run_stands_still(schedule):
    for warmup in (0, 1, 9, 10, 30):
        assert all(0 < factor <= 1 for factor in factors(schedule, 10, warmup=warmup)[:10])
