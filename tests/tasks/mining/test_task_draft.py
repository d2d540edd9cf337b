from pathlib import Path

import pytest

from gametape.tasks.dependency_env.build import DependencyEnv
from gametape.tasks.loader import read_task
from gametape.tasks.mining.candidates import Candidate, find_candidates, union_candidates
from gametape.tasks.mining.project_runner import ProjectRunner
from gametape.tasks.mining.suite_analysis import SuiteAnalysis
from gametape.tasks.mining.task_draft import TaskBuilder, TaskDraft, project_description
from gametape.tasks.mining.trial import CandidateTrial, ValidCandidate
from gametape.verify.warm_runner import WarmTestRunner

from .made import SHELF, project_of


@pytest.fixture(scope="module")
def trial(site: ProjectRunner, learned: SuiteAnalysis) -> CandidateTrial:
    return CandidateTrial.for_project(site, learned.baseline, learned.coverage_map, "stub")


@pytest.fixture(scope="module")
def find(learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner) -> ValidCandidate:
    return trial.attempt(candidate(learned, "noted"), surveyor)


def candidate(learned: SuiteAnalysis, seed: str) -> Candidate:
    found = find_candidates(learned.coverage_map, len(learned.baseline.tests), seed=0)
    return next(one for one in found if one.seeds[0].qualname == seed)


def maker(site: ProjectRunner) -> TaskBuilder:
    return TaskBuilder(site.project, DependencyEnv(site.interpreter, ("pytest==8",)), "stub", "deletion")


@pytest.fixture(scope="module")
def made(site: ProjectRunner, find: ValidCandidate) -> TaskDraft:
    return maker(site).build(find)


def test_the_manifest_has_the_tests_of_the_find(made: TaskDraft, find: ValidCandidate, site: ProjectRunner) -> None:
    task = made.loaded_task.task
    assert task.tests.fail_to_pass == [*find.split.visible]
    assert {*find.split.held_out} <= {*task.tests.held_out}
    assert task.tests.pass_to_pass == [*find.pass_to_pass]
    assert task.source_paths == ["tricky"]
    assert task.test_paths == ["tests"]
    assert (task.origin and (task.origin.name, task.origin.version)) == ("tricky", "1.2")
    assert task.dependencies == ["pytest==8"]
    assert task.difficulty is not None


def test_the_suite_is_the_authors_and_the_reference_restores(made: TaskDraft, site: ProjectRunner) -> None:
    assert made.loaded_task.suite == site.project.tree.under(["tests"])
    assert made.loaded_task.reference is not None
    assert made.loaded_task.reference.text("tricky/code.py") == site.project.tree.text("tricky/code.py")


def test_the_text_names_the_feature_and_shows_no_body(made: TaskDraft, find: ValidCandidate) -> None:
    text = made.loaded_task.task.instruction
    assert "noted" in text
    assert "What cannot be noted is let go." in text
    assert "return value * 2" not in text
    assert not any(test.rpartition("::")[2] in text.split() for test in find.split.held_out)


def test_what_is_written_is_read_again(made: TaskDraft, tmp_path: Path) -> None:
    made.write(tmp_path / "task")
    subject = read_task(tmp_path / "task")
    assert subject.task.tests == made.loaded_task.task.tests
    assert subject.start == made.loaded_task.start
    assert subject.reference == made.loaded_task.reference
    assert subject.task.instruction == made.loaded_task.task.instruction


def test_a_name_tells_what_it_is_about(made: TaskDraft, find: ValidCandidate) -> None:
    assert made.name == f"tricky-noted-{find.candidate.key[:8]}"


def test_facts_count_what_was_not_foreseen(
    site: ProjectRunner, learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner
) -> None:
    facts = maker(site).build(trial.attempt(candidate(learned, "_build"), surveyor)).log_facts
    assert facts["tests"]["not_predicted"] == 3
    assert facts["tests"]["passed_unexpectedly"] == 0
    assert facts["deleted"] == ["tricky/code.py::_build:41"]


def test_a_union_tells_of_all_its_parts(
    site: ProjectRunner, learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner
) -> None:
    (both,) = union_candidates([candidate(learned, "plain"), candidate(learned, "lookup")], 2, seed=0)
    made = maker(site).build(trial.attempt(both, surveyor))
    assert "2-features" in made.name
    assert "union" in made.keywords
    assert "plain" in made.loaded_task.task.instruction
    assert "lookup" in made.loaded_task.task.instruction


def test_a_project_says_about_itself_what_its_read_me_says() -> None:
    assert "Words and numbers of shelves." in project_description(project_of(SHELF))
    assert project_description(project_of({name: text for name, text in SHELF.items() if name != "README.md"})) == ""
