"""Verdicts by replay, with everything real: recorded tests, fresh calls, the floor, the grader's view."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gametape.core.verdict import Verdict
from gametape.verify.runner import Zygote, ZygotePool
from gametape.verify.verifier import Verifier
from tests.verify.small_task import RIGHT, START, small_task, workspace


class CountingPool(ZygotePool):
    """A pool that counts the zygotes that are taken."""

    taken = 0

    def take(self, interpreter: Path | None, memory_mb: int, module: str = "zygote") -> Zygote:
        self.taken += 1
        return super().take(interpreter, memory_mb, module)


@pytest.fixture(scope="module")
def zygotes() -> Iterator[CountingPool]:
    with CountingPool() as pool:
        yield pool


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory, zygotes: CountingPool) -> Iterator[Verifier]:
    shared = small_task(30.0)
    task = replace(shared, task=shared.task.model_copy(update={"mode": "replay"}))
    with Verifier(task, tmp_path_factory.mktemp("home"), zygotes) as verifier:
        verifier.prepared()
        yield verifier


def verify(verifier: Verifier, directory: Path, source: str) -> Verdict:
    return verifier.verify(workspace(directory, source), "train")


def test_a_right_solution_needs_no_test_runner(verifier: Verifier, zygotes: CountingPool, tmp_path: Path) -> None:
    before = zygotes.taken
    verdict = verify(verifier, tmp_path, f'"""Another docstring."""\n{RIGHT}')
    assert zygotes.taken == before
    assert (verdict.passed, verdict.reward, verdict.mode, verdict.assurance) == (True, 1.0, "replay", "high")
    assert verdict.fresh is not None
    assert verdict.fresh.agreed == verdict.fresh.calls >= 4


TABLE = """def add(a, b):
    return {(2, 3): 5, (-1, 1): 0, (20, 22): 42, ("a", "b"): "ab"}[a, b]


def name(n):
    return {0: "none", 7: "many", 1: "one"}[n]


def twice(n):
    return 2 * n
"""


def test_a_table_of_all_answers_ends_at_fresh_calls(verifier: Verifier, tmp_path: Path) -> None:
    right = TABLE.replace("def name(n):\n", "def name(n):\n    if n < 0:\n        raise ValueError\n")
    verdict = verify(verifier, tmp_path, right)
    assert verdict.tests.all_passed
    assert not verdict.passed
    assert verdict.reward < 0.3
    assert "fresh gap" in [signal.name for signal in verdict.signals]


def test_the_start_earns_nothing_and_says_what_was_raised(verifier: Verifier, tmp_path: Path) -> None:
    verdict = verify(verifier, tmp_path, START)
    assert (verdict.passed, verdict.reward) == (False, 0.0)
    told = {failure.test: failure.message for failure in verdict.failures}
    assert told["tests/test_calc.py::test_add"].endswith("NotImplementedError")
    assert not any("test_more" in test for test in told)


def test_a_grader_sees_every_difference(verifier: Verifier, tmp_path: Path) -> None:
    source = RIGHT.replace("return a + b", "return a + b if isinstance(a, int) else 7")
    graded = verifier.grade(workspace(tmp_path, source), "train")
    (text,) = graded.differences
    assert (text.test, text.held_out, text.outcome, text.kind) == (
        "tests/test_more.py::test_text",
        True,
        "failed",
        "recorded",
    )
    assert (text.input, text.expected, text.actual) == ("add('a', 'b')", "'ab'", "7")
    fresh = [each for each in graded.others if each.kind == "fresh"]
    assert graded.verdict.fresh is not None
    assert len(fresh) == graded.verdict.fresh.calls - graded.verdict.fresh.agreed
    assert "'ab'" not in graded.verdict.model_dump_json()
    assert "test_more" not in graded.verdict.model_dump_json()
