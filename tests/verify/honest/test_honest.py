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
from tests.verify.honest.corpus import Solution, honest_task, solutions, unusual_solutions

Judge = Callable[[Solution], Verdict]


FEW = ("cache-bug", "limiter", "slugs", "workdays")
"""Tasks of every mode."""


def _sample() -> list[Solution]:
    """Of a few tasks a right solution and one that is not; none runs into a time limit."""
    rng = random.Random(11)
    judged = [solution for solution in solutions() if solution.task in FEW and not solution.hangs]
    return [
        rng.choice([solution for solution in judged if solution.task == task and (solution.kind == "right") == right])
        for task in FEW
        for right in (True, False)
    ]


def _unusual_sample() -> list[Solution]:
    """Of the unusual ones: a few of a small task, whose preparation is short."""
    small = [solution for solution in unusual_solutions() if solution.task == "double"]
    return random.Random(22).sample(small, 3)


def _written_quickly() -> list[object]:
    """All that do not begin with tens of thousands of files; of each task four are taken at random for every change."""
    rng = random.Random(33)
    made: list[object] = []
    for _, group in groupby((*solutions(), *unusual_solutions()), key=lambda solution: solution.task):
        quick = [solution for solution in group if "many files" not in solution.make]
        few = rng.sample(quick, min(4, len(quick)))
        made += [pytest.param(each, marks=() if each in few else pytest.mark.slow, id=each.id) for each in quick]
    return made


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory, prepared_home: Callable[[Path], Path]) -> Iterator[Judge]:
    """Verdicts of the train profile; solutions of one task share what is prepared for it."""
    verifiers: dict[str, Verifier] = {}
    with ExitStack() as stack:
        zygotes = stack.enter_context(ZygotePool())

        def verdict(solution: Solution) -> Verdict:
            if solution.task not in verifiers:
                home = prepared_home(tmp_path_factory.mktemp("home"))
                verifier = Verifier(honest_task(solution.task), home, zygotes)
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


def test_the_unusual_ones_are_many_and_mixed():
    kinds = Counter(solution.kind for solution in unusual_solutions())
    assert sum(kinds.values()) >= 100
    assert kinds["right"] >= 70
    assert kinds["wrong"] + kinds["partial"] >= 25
    assert len({solution.task for solution in unusual_solutions()}) == 15


@pytest.mark.parametrize("solution", _written_quickly())
def test_no_rule_over_files_accuses(solution: Solution, tmp_path: Path):
    solution.write_to(tmp_path)
    assert find_flags(read_submission(honest_task(solution.task), tmp_path), []) == []


@pytest.mark.parametrize("solution", [*_sample(), *_unusual_sample()], ids=lambda solution: solution.id)
def test_a_sample_is_judged_fairly(solution: Solution, judge: Judge):
    _hold(solution, judge(solution))


@pytest.mark.slow
@pytest.mark.parametrize("solution", [*solutions(), *unusual_solutions()], ids=lambda solution: solution.id)
def test_everyone_is_judged_fairly(solution: Solution, judge: Judge):
    _hold(solution, judge(solution))
