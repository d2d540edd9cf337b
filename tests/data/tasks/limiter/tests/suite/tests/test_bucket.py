import pytest

from limiter.bucket import Bucket


def test_full_at_first(bucket):
    assert bucket.tokens() == 10.0


@pytest.mark.parametrize(("seconds", "tokens"), [(0, 0.0), (1, 2.0), (2.25, 4.5), (60, 10.0)])
def test_tokens_come_back(bucket, clock, seconds, tokens):
    bucket.take(10)
    clock.now += seconds
    assert bucket.tokens() == tokens


def test_all_or_none(bucket):
    assert bucket.take(8) is True
    assert bucket.take(3) is False
    assert bucket.tokens() == 2.0


def test_waiting(bucket):
    bucket.take(10)
    assert bucket.wait(3) == 1.5


@pytest.mark.parametrize(("rate", "capacity"), [(0, 1), (1, -1)])
def test_what_makes_no_sense(clock, rate, capacity):
    with pytest.raises(ValueError):
        Bucket(rate, capacity, clock)
