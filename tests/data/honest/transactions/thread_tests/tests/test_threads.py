import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from kv.errors import Conflict, MissingKey
from kv.store import Store


def test_only_one_wins():
    store = Store()
    store.set("n", 0)

    def attempt(value):
        try:
            with store.transaction() as transaction:
                transaction.set("n", value)
        except Conflict:
            return 0
        return 1

    with ThreadPoolExecutor(4) as pool:
        passed = sum(pool.map(attempt, range(20)))
    assert 1 <= passed <= 20


@pytest.mark.parametrize("error", [MissingKey("a"), Conflict(["a", "b"])])
def test_errors_can_be_pickled(error):
    assert pickle.loads(pickle.dumps(error)).args == error.args
