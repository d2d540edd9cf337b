import pytest

from cache import Cache


def filled(*keys, capacity):
    cache = Cache(capacity)
    for key in keys:
        cache.put(key, key.upper())
    return cache


def test_what_was_put_is_there():
    assert filled("a", capacity=2).get("a") == "A"


def test_a_missing_key_has_the_default():
    assert Cache(1).get("a", "none") == "none"


def test_the_oldest_entry_is_dropped():
    assert filled("a", "b", "c", capacity=2).keys() == ["b", "c"]


def test_reading_is_use():
    cache = filled("a", "b", capacity=2)
    cache.get("a")
    cache.put("c", "C")
    assert cache.keys() == ["a", "c"]


def test_peeking_is_not_use():
    cache = filled("a", "b", capacity=2)
    assert cache.peek("a") == "A"
    cache.put("c", "C")
    assert "a" not in cache


def test_growing_drops_nothing():
    cache = filled("a", "b", capacity=2)
    cache.resize(3)
    assert len(cache) == 2


def test_a_capacity_below_one_is_refused():
    with pytest.raises(ValueError):
        Cache(0)


def test_overwriting_drops_nothing():
    cache = filled("a", "b", capacity=2)
    cache.put("b", "new")
    assert cache.keys() == ["a", "b"]
    assert cache.get("b") == "new"


def test_writing_is_use():
    cache = filled("a", "b", capacity=3)
    cache.put("a", "new")
    assert cache.keys() == ["b", "a"]


def test_shrinking_drops_the_oldest():
    cache = filled("a", "b", "c", "d", capacity=4)
    cache.resize(2)
    assert cache.keys() == ["c", "d"]


def test_overwriting_in_a_full_cache_many_times():
    cache = filled("p", "q", "r", capacity=3)
    for value in range(5):
        cache.put("q", value)
    assert cache.keys() == ["p", "r", "q"]
    assert cache.peek("q") == 4


def test_an_overwritten_key_outlives_the_others():
    cache = filled("x", "y", "z", capacity=4)
    cache.put("x", 1)
    cache.put("v", 2)
    cache.put("w", 3)
    assert cache.keys() == ["z", "x", "v", "w"]


def test_shrinking_after_reads_follows_the_reads():
    cache = filled("k", "l", "m", "n", "o", capacity=5)
    cache.get("l")
    cache.get("k")
    cache.resize(3)
    assert cache.keys() == ["o", "l", "k"]


def test_growing_again_after_shrinking():
    cache = filled("e", "f", "g", capacity=3)
    cache.resize(1)
    cache.resize(2)
    cache.put("h", "H")
    assert cache.keys() == ["g", "h"]


def test_peek_does_not_save_an_entry_from_shrinking():
    cache = filled("s", "t", "u", capacity=3)
    cache.peek("s")
    cache.resize(2)
    assert cache.keys() == ["t", "u"]
