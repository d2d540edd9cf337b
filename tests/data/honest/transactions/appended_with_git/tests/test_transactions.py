import pytest

from kv.errors import Closed, Conflict, MissingKey, StoreError
from kv.store import Store


@pytest.fixture
def store():
    store = Store()
    store.set("a", 1)
    return store


def test_the_family():
    assert issubclass(MissingKey, StoreError)
    assert issubclass(MissingKey, KeyError)
    assert issubclass(Closed, StoreError)
    assert issubclass(Conflict, StoreError)


def test_a_missing_key_is_named(store):
    with pytest.raises(MissingKey) as caught:
        store.get("z")
    assert caught.value.key == "z"


def test_changes_are_applied_at_the_end(store):
    with store.transaction() as transaction:
        transaction.set("a", 2)
        transaction.set("b", 3)
        assert transaction.get("a") == 2
        assert store.get("a") == 1
    assert store.get("a") == 2
    assert store.keys() == ["a", "b"]


def test_an_exception_applies_nothing(store):
    with pytest.raises(ZeroDivisionError), store.transaction() as transaction:
        transaction.set("a", 2)
        transaction.set("b", 1 / 0)
    assert store.get("a") == 1


def test_after_the_end_it_is_closed(store):
    with store.transaction() as transaction:
        pass
    with pytest.raises(Closed):
        transaction.get("a")


def test_a_conflict(store):
    with pytest.raises(Conflict) as caught, store.transaction() as transaction:
        transaction.set("a", 2)
        store.set("a", 3)
    assert caught.value.keys == ["a"]
    assert store.get("a") == 3


def test_abort_twice(store):
    with store.transaction() as transaction:
        transaction.abort()
        transaction.abort()
    assert store.get("a") == 1


def test_conflicts_are_sorted(store):
    with pytest.raises(Conflict) as caught, store.transaction() as transaction:
        for key in "cba":
            transaction.set(key, 0)
            store.set(key, 1)
    assert caught.value.keys == ["a", "b", "c"]
