import pytest

from kv.errors import Closed, Conflict, MissingKey
from kv.store import Store


@pytest.fixture
def store():
    store = Store()
    for number, key in enumerate(["x", "y", "z"]):
        store.set(key, number)
    return store


def test_deleting_inside(store):
    with store.transaction() as transaction:
        transaction.delete("y")
        assert transaction.keys() == ["x", "z"]
        assert transaction.get("y", "gone") == "gone"
        with pytest.raises(MissingKey):
            transaction.delete("y")
        assert store.keys() == ["x", "y", "z"]
    assert store.keys() == ["x", "z"]


def test_aborting(store):
    with store.transaction() as transaction:
        transaction.set("x", 100)
        transaction.abort()
        transaction.abort()
        with pytest.raises(Closed):
            transaction.set("y", 100)
        reached = True
    assert reached
    assert store.get("x") == 0


def test_two_at_once_on_different_keys(store):
    with store.transaction() as first, store.transaction() as second:
        first.set("x", 10)
        second.set("y", 20)
    assert [store.get(key) for key in store.keys()] == [10, 20, 2]


def test_the_one_that_ends_last_loses(store):
    with pytest.raises(Conflict) as caught, store.transaction() as outer:
        outer.set("z", 7)
        outer.delete("x")
        outer.set("w", 8)
        with store.transaction() as inner:
            inner.set("z", 2)
            inner.delete("x")
    assert caught.value.keys == ["x", "z"]
    assert store.keys() == ["y", "z"]
    assert store.get("z") == 2


def test_reading_is_no_conflict(store):
    with store.transaction() as transaction:
        transaction.set("n", transaction.get("x"))
        store.set("x", 5)
    assert store.get("n") == 0


def test_a_key_set_and_deleted_again(store):
    with store.transaction() as transaction:
        transaction.set("new", 1)
        transaction.delete("new")
    assert store.keys() == ["x", "y", "z"]
