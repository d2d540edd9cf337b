import pytest

from limiter.bucket import Bucket
from limiter.limiter import Limiter


@pytest.mark.parametrize(("taken", "seconds", "asked", "wait"), [(6, 0, 4, 0.0), (9, 1, 5, 1.0), (10, 0.5, 10, 4.5)])
def test_waits(bucket, clock, taken, seconds, asked, wait):
    bucket.take(taken)
    clock.now += seconds
    assert bucket.wait(asked) == wait


def test_more_than_fits_never_comes(bucket):
    with pytest.raises(ValueError):
        bucket.wait(11)


def test_a_clock_that_goes_backwards(clock):
    bucket = Bucket(1, 5, clock)
    bucket.take(5)
    clock.now = 103.0
    assert bucket.tokens() == 3.0
    clock.now = 90.0
    assert bucket.tokens() == 3.0
    clock.now = 104.0
    assert bucket.tokens() == 4.0


def test_forgetting(limiter, clock):
    limiter.allow("x")
    limiter.allow("y")
    limiter.allow("y")
    clock.now += 2
    assert limiter.forget() == 1
    assert len(limiter) == 1
    assert limiter.waiting(["x", "y"]) == {}
    assert limiter.allow("y") is True


def test_a_limiter_refuses_what_makes_no_sense(clock):
    with pytest.raises(ValueError):
        Limiter(1, 0, clock)
