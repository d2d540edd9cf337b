import pytest

from limiter.rate import parse_rate


@pytest.mark.parametrize(("text", "rate"), [("5/s", 5.0), ("30/min", 0.5)])
def test_rates(text, rate):
    assert parse_rate(text) == rate
