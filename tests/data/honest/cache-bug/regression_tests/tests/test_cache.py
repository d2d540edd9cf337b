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


def test_report_1():
    cache = filled("a", "b", "c", capacity=3)
    cache.put("a", "again")
    assert len(cache) == 3


def test_report_2():
    cache = filled("hot", "cold", capacity=2)
    cache.put("hot", 1)
    cache.put("new", 2)
    assert "hot" in cache


def test_report_3():
    cache = filled("old", "new", capacity=2)
    cache.resize(1)
    assert cache.keys() == ["new"]
