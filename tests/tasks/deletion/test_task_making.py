from pathlib import Path

import pytest

from gametape.tasks.deletion.environments.environment import Environment
from gametape.tasks.deletion.features import Candidate, candidates, unions
from gametape.tasks.deletion.learned import Learned
from gametape.tasks.deletion.site import Site
from gametape.tasks.deletion.task_making import Made, Maker, described
from gametape.tasks.deletion.trial import Find, Trial
from gametape.tasks.directory import read_task
from gametape.verify.survey import Surveyor

from .made import SHELF, project_of


@pytest.fixture(scope="module")
def trial(site: Site, learned: Learned) -> Trial:
    return Trial.of(site, learned.baseline, learned.reached, "stub")


@pytest.fixture(scope="module")
def find(learned: Learned, trial: Trial, surveyor: Surveyor) -> Find:
    return trial.attempt(candidate(learned, "noted"), surveyor)


def candidate(learned: Learned, seed: str) -> Candidate:
    found = candidates(learned.reached, len(learned.baseline.tests), seed=0)
    return next(one for one in found if one.seeds[0].qualname == seed)


def maker(site: Site) -> Maker:
    return Maker(site.project, Environment(site.interpreter, ("pytest==8",)), "stub", "deletion")


@pytest.fixture(scope="module")
def made(site: Site, find: Find) -> Made:
    return maker(site).make(find)


def test_the_manifest_has_the_tests_of_the_find(made: Made, find: Find, site: Site) -> None:
    task = made.subject.task
    assert task.tests.fail_to_pass == [*find.split.visible]
    assert {*find.split.held_out} <= {*task.tests.held_out}
    assert task.tests.pass_to_pass == [*find.passing]
    assert task.source_paths == ["tricky"]
    assert task.test_paths == ["tests"]
    assert (task.origin and (task.origin.name, task.origin.version)) == ("tricky", "1.2")
    assert task.dependencies == ["pytest==8"]
    assert task.difficulty is not None


def test_the_suite_is_the_authors_and_the_reference_restores(made: Made, site: Site) -> None:
    assert made.subject.suite == site.project.tree.under(["tests"])
    assert made.subject.reference is not None
    assert made.subject.reference.text("tricky/code.py") == site.project.tree.text("tricky/code.py")


def test_the_text_names_the_feature_and_shows_no_body(made: Made, find: Find) -> None:
    text = made.subject.task.instruction
    assert "noted" in text
    assert "What cannot be noted is let go." in text
    assert "return value * 2" not in text
    assert not any(test.rpartition("::")[2] in text.split() for test in find.split.held_out)


def test_what_is_written_is_read_again(made: Made, tmp_path: Path) -> None:
    made.write(tmp_path / "task")
    subject = read_task(tmp_path / "task")
    assert subject.task.tests == made.subject.task.tests
    assert subject.start == made.subject.start
    assert subject.reference == made.subject.reference
    assert subject.task.instruction == made.subject.task.instruction


def test_a_name_tells_what_it_is_about(made: Made, find: Find) -> None:
    assert made.name == f"tricky-noted-{find.candidate.key[:8]}"


def test_facts_count_what_was_not_foreseen(site: Site, learned: Learned, trial: Trial, surveyor: Surveyor) -> None:
    facts = maker(site).make(trial.attempt(candidate(learned, "_build"), surveyor)).facts
    assert facts["tests"]["not_predicted"] == 3
    assert facts["tests"]["passed_unexpectedly"] == 0
    assert facts["deleted"] == ["tricky/code.py::_build:41"]


def test_a_union_tells_of_all_its_parts(site: Site, learned: Learned, trial: Trial, surveyor: Surveyor) -> None:
    (both,) = unions([candidate(learned, "plain"), candidate(learned, "lookup")], 2, seed=0)
    made = maker(site).make(trial.attempt(both, surveyor))
    assert "2-features" in made.name
    assert "union" in made.keywords
    assert "plain" in made.subject.task.instruction
    assert "lookup" in made.subject.task.instruction


def test_a_project_says_about_itself_what_its_read_me_says() -> None:
    assert "Words and numbers of shelves." in described(project_of(SHELF))
    assert described(project_of({name: text for name, text in SHELF.items() if name != "README.md"})) == ""
