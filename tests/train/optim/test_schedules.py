"""Learning rates over a run."""

import pytest

from gametape.train.optim import schedule_factor, warmup_factor


def factors(schedule, steps):
    return [schedule_factor(schedule, step / steps) for step in range(steps + 2)]


def test_each_schedule():
    assert factors("constant", 3) == [1, 1, 1, 1, 1]
    assert factors("linear", 4) == [1, 0.75, 0.5, 0.25, 0, 0]
    assert factors("cosine", 4) == pytest.approx([1, 0.853553, 0.5, 0.146447, 0, 0], abs=1e-5)


def test_the_first_updates_are_smaller():
    assert [warmup_factor(step, 1) for step in range(3)] == [0.5, 1, 1]
    assert [warmup_factor(step, 2) for step in range(4)] == pytest.approx([1 / 3, 2 / 3, 1, 1])
    assert warmup_factor(0, 0) == 1


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_no_step_of_a_run_stands_still(schedule):
    for warmup in (0, 1, 9, 10, 30):
        found = [factor * warmup_factor(step, warmup) for step, factor in enumerate(factors(schedule, 10)[:10])]
        assert all(0 < factor <= 1 for factor in found)
