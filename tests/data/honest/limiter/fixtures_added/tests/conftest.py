import pytest

from limiter.bucket import Bucket
from limiter.limiter import Limiter


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def bucket(clock):
    return Bucket(2, 10, clock)


@pytest.fixture
def limiter(clock):
    return Limiter(0.5, 2, clock)


@pytest.fixture(params=[0.5, 1, 3])
def rate(request):
    return request.param


@pytest.fixture
def drained(rate, clock):
    bucket = Bucket(rate, 4, clock)
    bucket.take(4)
    return bucket
