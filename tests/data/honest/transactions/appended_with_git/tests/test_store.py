import pytest

from kv.store import Store


def test_what_was_set_is_there():
    store = Store()
    store.set("a", 1)
    assert store.get("a") == 1


def test_a_default():
    assert Store().get("a", None) is None


def test_keys_are_sorted():
    store = Store()
    store.set("b", 1)
    store.set("a", 2)
    assert store.keys() == ["a", "b"]


def test_a_missing_key_is_a_key_error():
    with pytest.raises(KeyError):
        Store().delete("a")


def test_overwriting():
    store = Store()
    store.set("a", 1)
    store.set("a", 2)
    assert store.get("a") == 2
