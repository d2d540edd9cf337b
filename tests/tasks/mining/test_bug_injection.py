import ast
import re

import pytest

from gametape.tasks.dependency_env.build import DependencyEnv
from gametape.tasks.mining import bug_injection
from gametape.tasks.mining.bug_injection import inject_bug
from gametape.tasks.mining.candidates import find_candidates
from gametape.tasks.mining.project_runner import ProjectRunner
from gametape.tasks.mining.suite_analysis import SuiteAnalysis
from gametape.tasks.mining.task_draft import TaskBuilder, restore_sources
from gametape.tasks.mining.trial import CandidateRejected, CandidateTrial, ValidCandidate
from gametape.verify.warm_runner import WarmTestRunner

from .promises import assert_kept


@pytest.fixture(scope="module")
def trial(site: ProjectRunner, learned: SuiteAnalysis) -> CandidateTrial:
    return CandidateTrial.for_project(site, learned.baseline, learned.coverage_map, "stub")


def broken(
    learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner, name: str, seed: int = 0
) -> ValidCandidate:
    found = find_candidates(learned.coverage_map, len(learned.baseline.tests), seed=0)
    (one,) = (one for one in found if one.seeds[0].qualname == name)
    return inject_bug(trial, one, surveyor, seed)


def test_one_small_change_that_tests_notice(
    site: ProjectRunner, learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner
) -> None:
    find = broken(learned, trial, surveyor, "counted")
    before, after = (tree.text("tricky/code.py") for tree in (site.project.tree, find.start))
    assert before != after
    assert abs(len(before.splitlines()) - len(after.splitlines())) <= 2
    ast.parse(after)
    (function,) = find.deleted
    assert function.qualname == "counted"
    assert after.splitlines()[: function.line] == before.splitlines()[: function.line]
    assert_kept(site, find)


def test_the_reference_is_the_authors_code(
    site: ProjectRunner, learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner
) -> None:
    find = broken(learned, trial, surveyor, "noted")
    assert restore_sources(site.project, find.start).text("tricky/code.py") == site.project.tree.text("tricky/code.py")


def test_the_same_seed_plants_the_same_bug(
    learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner
) -> None:
    assert broken(learned, trial, surveyor, "lookup").start == broken(learned, trial, surveyor, "lookup").start


def test_the_text_tells_what_fails_and_not_what_was_changed(
    site: ProjectRunner, learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner
) -> None:
    find = broken(learned, trial, surveyor, "counted")
    made = TaskBuilder(site.project, DependencyEnv(site.interpreter, ()), "stub", "bug").build(find)
    text = made.loaded_task.task.instruction
    assert find.split.visible[0].rpartition("::")[2] in text
    assert "found.get(word, 0) + 1" not in text
    assert "for word in _split(text)" not in text
    assert not {test.rpartition("::")[2] for test in find.split.held_out} & {*re.findall(r"\w+", text)}


def test_what_no_two_tests_notice_is_rejected(
    learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bug_injection, "_MOST_TRIED", 4)
    with pytest.raises(CandidateRejected) as caught:
        broken(learned, trial, surveyor, "_note")
    assert caught.value.reason == "unnoticed"


@pytest.mark.parametrize("name", ["quoted", "merged"])
def test_a_bug_in_code_that_can_be_read_elsewhere_is_a_leak(
    learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner, name: str
) -> None:
    with pytest.raises(CandidateRejected) as caught:
        broken(learned, trial, surveyor, name)
    assert caught.value.reason == "leak"
