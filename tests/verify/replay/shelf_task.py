"""A small task whose tests use functions, objects, callbacks, sets, exceptions, and state that lasts."""

from gametape.core.task import Task, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree

RIGHT = '''"""Books on a shelf."""

import random

_seen = []


class Full(Exception):
    pass


class Shelf:
    def __init__(self, room):
        self.room = room
        self.books = []

    def put(self, title):
        if len(self.books) == self.room:
            raise Full(f"no room for {title}")
        self.books.append(title)
        return len(self.books)

    def __eq__(self, other):
        if isinstance(other, list):
            return self.books == other
        return isinstance(other, Shelf) and self.books == other.books

    def __hash__(self):
        return 7


def total(numbers):
    return sum(numbers)


def ratio(a, b):
    return {"ratio": a / b, "of": [a, b]}


def words(text):
    return set(text.split())


def apply(function, values):
    return [function(value) for value in values]


def remember(word):
    _seen.append(word)
    return list(_seen)


def noise():
    return random.random()


def extend(numbers):
    numbers.append(len(numbers))
'''
VISIBLE = """import pytest

from shelf import Full, Shelf, apply, extend, noise, ratio, remember, total, words


def test_total():
    assert total([1, 2]) == 3
    assert total([total([4]), 5]) == 9


def test_ratio():
    assert ratio(1, 3)["ratio"] == pytest.approx(1 / 3)


def test_words():
    assert words("a b c d e f g a") == set("abcdefg")


def test_shelf():
    shelf = Shelf(2)
    assert [shelf.put("a"), shelf.put("b")] == [1, 2]
    assert shelf == ["a", "b"]
    assert shelf != ["a"]
    with pytest.raises(Full):
        shelf.put("c")


def test_apply():
    assert apply(lambda value: value * 2, [1, 2]) == [2, 4]


def test_remember():
    assert remember("x") == ["x"]


def test_noise():
    assert 0 <= noise() < 1


def test_extend():
    numbers = [5]
    extend(numbers)
    assert numbers == [5, 1]
"""
HELD_OUT = """from shelf import remember, total


def test_empty():
    assert total([]) == 0


def test_remember_more():
    assert remember("y") == ["y"]


def test_never_there():
    import shelf

    assert open(shelf.__file__).read()
"""
_VISIBLE_NAMES = ("total", "ratio", "words", "shelf", "apply", "remember", "noise", "extend")
_HELD_OUT_NAMES = ("empty", "remember_more", "never_there")


def visible(name: str) -> str:
    return f"tests/test_shelf.py::test_{name}"


def held_out(name: str) -> str:
    return f"tests/test_more.py::test_{name}"


def sources(text: str) -> SourceTree:
    return SourceTree({"shelf.py": text.encode()})


def shelf_task(name: str = "shelf", more: str = "") -> LoadedTask:
    """The task; `more` is added to its starting tree, which has nothing of it."""
    tests = TaskTests(
        fail_to_pass=[visible(test) for test in _VISIBLE_NAMES],
        pass_to_pass=[],
        held_out=[held_out(test) for test in _HELD_OUT_NAMES],
    )
    task = Task(name=name, mode="shared", instruction="Write it.", source_paths=["shelf.py"], tests=tests)
    seen = SourceTree({"tests/test_shelf.py": VISIBLE.encode()})
    start = sources(more).overlaid_on(seen)
    suite = SourceTree({"tests/test_more.py": HELD_OUT.encode()}).overlaid_on(seen)
    return LoadedTask(task, start, suite, sources(RIGHT).overlaid_on(start))
