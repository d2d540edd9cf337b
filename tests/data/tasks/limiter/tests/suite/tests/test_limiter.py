def test_each_key_has_its_own(limiter):
    assert [limiter.allow(key) for key in "aabab"] == [True, True, True, False, True]


def test_who_waits(limiter, clock):
    limiter.allow("a")
    limiter.allow("a")
    clock.now += 0.5
    assert limiter.waiting(["a", "b"]) == {"a": 1.5}
    assert len(limiter) == 1
