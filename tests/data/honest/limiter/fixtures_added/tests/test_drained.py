import pytest


def test_wait_is_enough(drained, clock):
    clock.now += drained.wait(3)
    assert drained.tokens() == pytest.approx(3)


def test_count_below_one(drained):
    with pytest.raises(ValueError):
        drained.take(0)
