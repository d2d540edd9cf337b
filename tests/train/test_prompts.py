"""Which cell comes next."""

from collections import Counter

from gametape.train.prompts import Curriculum


def test_what_is_learned_retires_and_is_seen_again_now_and_then() -> None:
    curriculum = Curriculum(buckets=2, pass_rate=0.9, samples=24, replay=0.05, seed=1)
    curriculum.record(0, [True] * 23)
    assert curriculum.retired == []
    curriculum.record(0, [True])
    assert curriculum.retired == [0]
    drawn = Counter(curriculum.draw(number) for number in range(4000))
    assert 120 < drawn[0] < 280


def test_what_is_forgotten_comes_back() -> None:
    curriculum = Curriculum(buckets=2, pass_rate=0.9, samples=24, replay=0.05, seed=1)
    curriculum.record(0, [True] * 24)
    curriculum.record(0, [False] * 12)
    assert curriculum.retired == []


def test_with_everything_retired_it_goes_on() -> None:
    curriculum = Curriculum(buckets=1, pass_rate=0.9, samples=24, replay=0.0, seed=1)
    curriculum.record(0, [True] * 24)
    assert curriculum.draw(7) == 0


def test_draws_depend_on_the_seed_and_the_state_alone() -> None:
    first = Curriculum(buckets=5, pass_rate=0.9, samples=24, replay=0.1, seed=3)
    first.record(2, [True] * 30)
    second = Curriculum(buckets=5, pass_rate=0.9, samples=24, replay=0.1, seed=3)
    second.restore(first.state())
    assert [first.draw(number) for number in range(200)] == [second.draw(number) for number in range(200)]
