"""Plans keep the twins that fail alone, survive a round trip, and are drawn from evenly."""

import collections
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from gametape.record.source_tree import SourceTree
from gametape.verify.twins.plan import (
    LENIENT_KINDS,
    TwinPlan,
    draw_twins,
    expected_failures,
    mutate_suite,
    validate_twins,
)

from .test_candidates import outcomes

_PLAIN = """
import pytest

def test_a():
    assert len("abc") == 3
    assert "a" in "abc"

def test_b():
    with pytest.raises(ValueError, match="invalid literal"):
        int("x")

@pytest.mark.parametrize("x, y", [("a", 1), ("bb", 2)])
def test_c(x, y):
    assert len(x) == y

class TestD:
    def test_e(self):
        assert "x".upper() == "X"
"""
_STATEFUL = """
switch = []

def test_a():
    switch.append(1)
    assert len(switch) == 1
    switch.clear()

def test_b():
    assert switch == []

def test_c():
    assert len("ab") == 2
"""
_BASE = """
import string
import unittest

class Shared:
    size = 1
    def test_size(self):
        self.assertEqual(len("a" * self.size), self.size)
        self.assertEqual(string.digits[:2], "01")
"""
_HEIR = """
import unittest
from .base import Shared

class SmallTest(Shared, unittest.TestCase):
    size = 2

class LargeTest(Shared, unittest.TestCase):
    size = 20
"""


class Reference:
    """Runs a suite with pytest, and counts how often."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.runs = 0

    def __call__(self, suite: SourceTree, tests: Sequence[str]) -> Mapping[str, str]:
        self.runs += 1
        where = self.directory / str(self.runs)
        suite.write_to(where)
        found = outcomes(where, {})
        return {test: found.get(test, "missing") for test in tests}


def tree(**files: str) -> SourceTree:
    return SourceTree({f"{name}.py": source.encode() for name, source in files.items()})


def passing(reference: Reference, suite: SourceTree) -> list[str]:
    where = reference.directory / "first"
    suite.write_to(where)
    found = outcomes(where, {})
    assert set(found.values()) == {"passed"}
    return list(found)


@dataclass(frozen=True)
class Planned:
    suite: SourceTree
    tests: list[str]
    plan: TwinPlan
    reference: Reference
    runs: int


@pytest.fixture
def reference(tmp_path: Path) -> Reference:
    return Reference(tmp_path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Planned:
    reference = Reference(tmp_path_factory.mktemp("plain"))
    suite = tree(test_plain=_PLAIN)
    tests = passing(reference, suite)
    plan = validate_twins(suite, tests, reference)
    return Planned(suite, tests, plan, reference, reference.runs)


def test_what_is_drawn_fails_and_nothing_else(plain: Planned) -> None:
    plan = plain.plan
    assert plain.runs <= 6
    places = {(each.file, each.twin.function) for each in plan.validated}
    assert places == {("test_plain.py", name) for name in ("test_a", "test_b", "test_c", "TestD::test_e")}
    for seed in range(2):
        drawn = draw_twins(plan, [("test_plain.py", "test_a"), ("test_plain.py", "test_c")], random.Random(seed))
        failing = expected_failures(plan, drawn)
        results = plain.reference(mutate_suite(plain.suite, drawn), plain.tests)
        assert failing
        assert {test for test, result in results.items() if result == "failed"} == failing
        assert {result for test, result in results.items() if test not in failing} == {"passed"}


def test_all_cases_turn_at_once_and_one_can_turn_alone(plain: Planned) -> None:
    tables = [each for each in plain.plan.validated if each.twin.cases]
    assert tables
    for each in tables:
        assert len(each.flips) == len(each.twin.cases) == 2
        alone = each.twin.only(each.flips[:1])
        assert alone is not None
        assert [changed.case for changed in alone.cases] == [each.twin.cases[0].case]
        assert alone.edits == each.twin.cases[0].edits
        assert each.twin.only(["test_plain.py::test_c[other]"]) is None


def test_a_test_whose_failure_disturbs_others_gets_no_twins(reference: Reference) -> None:
    suite = tree(test_stateful=_STATEFUL)
    plan = validate_twins(suite, passing(reference, suite), reference, rounds=2)
    functions = {each.twin.function for each in plan.validated}
    assert "test_a" not in functions
    assert "test_c" in functions


def test_inherited_tests_turn_in_one_class_alone(reference: Reference) -> None:
    suite = SourceTree({"t/__init__.py": b"", "t/base.py": _BASE.encode(), "t/test_heir.py": _HEIR.encode()})
    tests = passing(reference, suite)
    plan = validate_twins(suite, tests, reference, rounds=1)
    drawn = draw_twins(plan, [("t/test_heir.py", "SmallTest::test_size")], random.Random(1))
    results = reference(mutate_suite(suite, drawn), tests)
    assert results == {
        "t/test_heir.py::SmallTest::test_size": "failed",
        "t/test_heir.py::LargeTest::test_size": "passed",
    }


def test_twins_that_pass_are_never_kept() -> None:
    suite = tree(test_plain=_PLAIN)
    tests = ["test_plain.py::test_a", "test_plain.py::test_b"]
    assert validate_twins(suite, tests, lambda _, ids: dict.fromkeys(ids, "passed")) == TwinPlan.empty()


def test_a_plan_survives_the_round_trip(plain: Planned) -> None:
    plan = plain.plan
    assert TwinPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    with pytest.raises(ValueError, match="validated"):
        TwinPlan.from_json({"plan": 1})


def test_kinds_are_drawn_evenly(plain: Planned) -> None:
    plan = plain.plan
    place = ("test_plain.py", "test_b")
    kinds = {validated.twin.kind for validated in plan.validated if validated.key == place} - LENIENT_KINDS
    rng = random.Random(0)
    counts = collections.Counter(draw_twins(plan, [place], rng)[place].kind for _ in range(300))
    assert set(counts) == kinds
    assert min(counts.values()) > 300 / len(kinds) / 2


def test_functions_without_twins_are_left_out() -> None:
    assert draw_twins(TwinPlan.empty(), [("a.py", "test_a")], random.Random(0)) == {}
