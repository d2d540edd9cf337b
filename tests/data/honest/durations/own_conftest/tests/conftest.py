import random

import pytest

from durations import format_duration


def pytest_configure(config):
    config.addinivalue_line("markers", "roundtrip: reads what was written")


@pytest.fixture
def seconds():
    """A fixed draw, so that a failure can be repeated."""
    return random.Random(7).sample(range(1, 1_000_000), 25)


@pytest.fixture
def texts(seconds):
    return [format_duration(each) for each in seconds]
