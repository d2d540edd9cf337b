"""The promise of the detector, and how it is calibrated."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gametape.watch.detector import EDetector, tolerated_rate, upper_bound


@pytest.mark.parametrize("tolerated", [0.05, 0.3, 0.8])
def test_the_mean_time_to_a_false_alarm_is_at_least_the_threshold(tolerated: float) -> None:
    rng = random.Random(1)
    threshold = 200
    lengths = []
    for _ in range(150):
        detector = EDetector(tolerated)
        steps = 1
        while detector.update(rng.random() < tolerated) < threshold:
            steps += 1
        lengths.append(steps)
    assert sum(lengths) / len(lengths) > threshold


def test_the_promise_needs_no_independence() -> None:
    """Whether a yes may come depends on the past; its chance, when it may, is the tolerated one."""
    rng = random.Random(2)
    lengths = []
    for _ in range(150):
        detector = EDetector(0.3)
        steps, allowed = 1, True
        while (value := detector.update(allowed and rng.random() < 0.3)) < 200:
            steps += 1
            allowed = value > 1 or steps % 3 == 0
        lengths.append(steps)
    assert sum(lengths) / len(lengths) > 200


def test_a_high_rate_is_seen_within_a_few_steps() -> None:
    rng = random.Random(3)
    delays = []
    for _ in range(50):
        detector = EDetector(0.1)
        steps = 1
        while detector.update(rng.random() < 0.97) < 140_000:
            steps += 1
        delays.append(steps)
    assert sorted(delays)[25] <= 8


def test_evidence_is_forgotten_while_all_is_well() -> None:
    detector = EDetector(0.3)
    for _ in range(5):
        detector.update(True)
    for _ in range(100):
        detector.update(False)
    assert detector.value < 3


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_bound_lies_above_the_frequency(counted: tuple[int, int]) -> None:
    successes, trials = counted
    assert successes / trials <= upper_bound(successes, trials) <= 1


def test_what_is_tolerated_follows_the_busiest_stretch() -> None:
    calm = [False] * 200
    burst = [False] * 100 + [True] * 20 + [False] * 80
    assert tolerated_rate(calm, 0.01) < 0.15
    assert tolerated_rate(burst, 0.01) > 0.5
    assert tolerated_rate([True] * 200, 0.01) == 1
    assert tolerated_rate([], 0.2) == 0.2
