import ast
import re

import pytest

from gametape.tasks.deletion import breaking
from gametape.tasks.deletion.breaking import break_it
from gametape.tasks.deletion.environments.environment import Environment
from gametape.tasks.deletion.features import candidates
from gametape.tasks.deletion.learned import Learned
from gametape.tasks.deletion.site import Site
from gametape.tasks.deletion.task_making import Maker, restored
from gametape.tasks.deletion.trial import Find, Rejected, Trial
from gametape.verify.survey import Surveyor

from .promises import assert_kept


@pytest.fixture(scope="module")
def trial(site: Site, learned: Learned) -> Trial:
    return Trial.of(site, learned.baseline, learned.reached, "stub")


def broken(learned: Learned, trial: Trial, surveyor: Surveyor, name: str, seed: int = 0) -> Find:
    found = candidates(learned.reached, len(learned.baseline.tests), seed=0)
    (one,) = (one for one in found if one.seeds[0].qualname == name)
    return break_it(trial, one, surveyor, seed)


def test_one_small_change_that_tests_notice(site: Site, learned: Learned, trial: Trial, surveyor: Surveyor) -> None:
    find = broken(learned, trial, surveyor, "counted")
    before, after = (tree.text("tricky/code.py") for tree in (site.project.tree, find.start))
    assert before != after
    assert abs(len(before.splitlines()) - len(after.splitlines())) <= 2
    ast.parse(after)
    (function,) = find.deleted
    assert function.qualname == "counted"
    assert after.splitlines()[: function.line] == before.splitlines()[: function.line]
    assert_kept(site, find)


def test_the_reference_is_the_authors_code(site: Site, learned: Learned, trial: Trial, surveyor: Surveyor) -> None:
    find = broken(learned, trial, surveyor, "noted")
    assert restored(site.project, find.start).text("tricky/code.py") == site.project.tree.text("tricky/code.py")


def test_the_same_seed_plants_the_same_bug(learned: Learned, trial: Trial, surveyor: Surveyor) -> None:
    assert broken(learned, trial, surveyor, "lookup").start == broken(learned, trial, surveyor, "lookup").start


def test_the_text_tells_what_fails_and_not_what_was_changed(
    site: Site, learned: Learned, trial: Trial, surveyor: Surveyor
) -> None:
    find = broken(learned, trial, surveyor, "counted")
    made = Maker(site.project, Environment(site.interpreter, ()), "stub", "bug").make(find)
    text = made.subject.task.instruction
    assert find.split.visible[0].rpartition("::")[2] in text
    assert "found.get(word, 0) + 1" not in text
    assert "for word in _split(text)" not in text
    assert not {test.rpartition("::")[2] for test in find.split.held_out} & {*re.findall(r"\w+", text)}


def test_what_no_two_tests_notice_is_rejected(
    learned: Learned, trial: Trial, surveyor: Surveyor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaking, "_MOST_TRIED", 4)
    with pytest.raises(Rejected) as caught:
        broken(learned, trial, surveyor, "_note")
    assert caught.value.reason == "unnoticed"


@pytest.mark.parametrize("name", ["quoted", "merged"])
def test_a_bug_in_code_that_can_be_read_elsewhere_is_a_leak(
    learned: Learned, trial: Trial, surveyor: Surveyor, name: str
) -> None:
    with pytest.raises(Rejected) as caught:
        broken(learned, trial, surveyor, name)
    assert caught.value.reason == "leak"
