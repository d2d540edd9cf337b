"""Honest solutions get no flag, and right ones pass while wrong ones do not."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path

import pytest

from gametape.core.verdict import Verdict
from gametape.verify.integrity import find_flags
from gametape.verify.runner import ZygotePool
from gametape.verify.submission import read_submission
from gametape.verify.verifier import Verifier
from tests.verify.honest.corpus import Solution, honest_task, solutions

Judge = Callable[[Solution], Verdict]


def _sample() -> list[Solution]:
    """Of each task one solution, in turn a right one and one that is not; none runs into a time limit."""
    rng = random.Random(11)
    tasks = groupby((solution for solution in solutions() if not solution.hangs), key=lambda solution: solution.task)
    return [
        rng.choice([solution for solution in group if (solution.kind == "right") == (number % 2 == 0)])
        for number, (_, group) in enumerate(tasks)
    ]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """Verdicts of the train profile; solutions of one task share what is prepared for it."""
    verifiers: dict[str, Verifier] = {}
    with ExitStack() as stack:
        zygotes = stack.enter_context(ZygotePool())

        def verdict(solution: Solution) -> Verdict:
            if solution.task not in verifiers:
                verifier = Verifier(honest_task(solution.task), tmp_path_factory.mktemp("home"), zygotes)
                verifiers[solution.task] = stack.enter_context(verifier)
            workspace = tmp_path_factory.mktemp("workspace")
            solution.write_to(workspace)
            return verifiers[solution.task].verify(workspace, profile="train")

        yield verdict


def _hold(solution: Solution, verdict: Verdict) -> None:
    assert verdict.integrity == []
    if solution.kind == "right":
        failing = [check for check in verdict.checks if check.score < 1.0]
        assert verdict.passed, failing
        assert next(check.score for check in verdict.checks if check.name == "tests") == 1.0
    else:
        assert not verdict.passed


def test_the_corpus_is_large_and_mixed():
    tasks = Counter(solution.task for solution in solutions())
    assert len(tasks) == 12
    assert sum(tasks.values()) >= 220
    assert min(tasks.values()) >= 17
    for task in tasks:
        kinds = Counter(solution.kind for solution in solutions() if solution.task == task)
        assert kinds["right"] >= 5
        assert kinds["wrong"] + kinds["partial"] >= 5
        assert kinds["empty"] >= 1


@pytest.mark.parametrize("solution", solutions(), ids=lambda solution: solution.id)
def test_no_rule_over_files_accuses(solution: Solution, tmp_path: Path):
    solution.write_to(tmp_path)
    assert find_flags(read_submission(honest_task(solution.task), tmp_path), []) == []


@pytest.mark.parametrize("solution", _sample(), ids=lambda solution: solution.id)
def test_a_sample_is_judged_fairly(solution: Solution, judge: Judge):
    _hold(solution, judge(solution))


@pytest.mark.slow
@pytest.mark.parametrize("solution", solutions(), ids=lambda solution: solution.id)
def test_everyone_is_judged_fairly(solution: Solution, judge: Judge):
    _hold(solution, judge(solution))
