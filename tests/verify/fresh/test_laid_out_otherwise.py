"""Right solutions whose classes are laid out otherwise than the reference's, and errors that come early or late."""

from collections.abc import Iterator

import pytest

from gametape.core.task import Task, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify.fresh.judge import FreshJudge
from gametape.verify.replay.recording import record_tests
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.runner import ZygotePool

_POINTS = {
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass Point:\n    x: int\n    y: int\n",
    "named tuple": "from typing import NamedTuple\nclass Point(NamedTuple):\n    x: int\n    y: int\n",
}
_RINGS = {
    "has a list": """
class Ring:
    def __init__(self, size):
        self.size, self._kept = size, []
    def push(self, value):
        self._kept = [*self._kept, value][-self.size:]
    def total(self):
        return sum(self._kept)
    def windows(self, size):
        if size < 1:
            raise ValueError(size)
        return iter([self._kept[at:at + size] for at in range(len(self._kept) - size + 1)])
""",
    "is a list": """
class Ring(list):
    def __init__(self, size):
        self.size = size
    def push(self, value):
        self.append(value)
        del self[:-self.size]
    def total(self):
        return sum(self)
    def windows(self, size):
        if size < 1:
            raise ValueError(size)
        for at in range(len(self) - size + 1):
            yield list(self[at:at + size])
""",
    "is a deque": """
import collections
class Ring(collections.deque):
    def __init__(self, size):
        super().__init__(maxlen=size)
    def push(self, value):
        self.append(value)
    def total(self):
        return sum(self)
    def windows(self, size):
        if size < 1:
            raise ValueError(size)
        kept = list(self)
        for at in range(len(kept) - size + 1):
            yield kept[at:at + size]
""",
}
_LOCATE = """
def locate(text):
    x, y = text.split(",")
    return Point(int(x), int(y))
"""
_TESTS = """
import pytest
from laid import Ring, locate

@pytest.mark.parametrize(("text", "x", "y"), [("3,4", 3, 4), ("-30,12", -30, 12), ("7,100", 7, 100)])
def test_locate(text, x, y):
    point = locate(text)
    assert point.x == x
    assert point.y == y

@pytest.mark.parametrize("values", [[1, 2, 3], [10, 20, 30, 40], [5], [7, 8, 9, 10, 11]])
def test_ring(values):
    ring = Ring(3)
    for value in values:
        ring.push(value)
    assert ring.total() == sum(values[-3:])
    assert list(ring.windows(1)) == [[value] for value in values[-3:]]

@pytest.mark.parametrize("size", [0, -1, -2, -5])
def test_no_windows(size):
    ring = Ring(4)
    ring.push(size)
    with pytest.raises(ValueError):
        list(ring.windows(size))
"""
_NAMES = [
    *(f"test_locate[{text}]" for text in ("3,4-3-4", "-30,12--30-12", "7,100-7-100")),
    *(f"test_ring[values{number}]" for number in range(4)),
    *(f"test_no_windows[{size}]" for size in (0, -1, -2, -5)),
]
_SOLUTIONS = {
    (point, ring): f"{_POINTS[point]}{_RINGS[ring]}{_LOCATE}"
    for point, ring in (("dataclass", "has a list"), ("named tuple", "is a list"), ("named tuple", "is a deque"))
}


def sources(text: str) -> SourceTree:
    return SourceTree({"laid.py": text.encode()})


def laid_task(reference: str) -> LoadedTask:
    tests = TaskTests(fail_to_pass=[f"tests/test_laid.py::{name}" for name in _NAMES], pass_to_pass=[])
    task = Task(name="laid", mode="shared", instruction="Write it.", source_paths=["laid.py"], tests=tests)
    suite = SourceTree({"tests/test_laid.py": _TESTS.encode()})
    start = sources("").overlaid_on(suite)
    return LoadedTask(task, start, suite, sources(reference).overlaid_on(start))


_REFERENCES = [
    pytest.param(key, id=" ".join(key), marks=pytest.mark.slow if number else ())
    for number, key in enumerate(_SOLUTIONS)
]


@pytest.fixture(scope="module", params=_REFERENCES)
def judge(request: pytest.FixtureRequest) -> Iterator[tuple[FreshJudge, tuple[str, str]]]:
    loaded_task = laid_task(_SOLUTIONS[request.param])
    with ZygotePool(1) as zygotes, ReplaySandboxes() as sandboxes:
        recording = record_tests(loaded_task, zygotes, sandboxes)
        assert len(recording.transcripts) == len(_NAMES), recording.reasons
        with FreshJudge([*recording.transcripts.values()], loaded_task, sandboxes, seed=5) as made:
            yield made, request.param


def test_a_right_solution_agrees_however_it_is_laid_out(judge: tuple[FreshJudge, tuple[str, str]]) -> None:
    for text in _SOLUTIONS.values():
        result = judge[0].judge(sources(text))
        assert result.calls > 12
        assert result.differences == ()


def test_a_wrong_one_does_not(judge: tuple[FreshJudge, tuple[str, str]]) -> None:
    for text in _SOLUTIONS.values():
        wrong = text.replace("int(x), int(y)", "int(x), int(x)").replace("sum(self", "len(self")
        result = judge[0].judge(sources(wrong))
        assert result.agreed < 0.6 * result.calls
