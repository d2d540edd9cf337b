from pathlib import Path

import pytest

from gametape.tasks.mining.candidates import Candidate, find_candidates, union_candidates
from gametape.tasks.mining.project_runner import ProjectRunner
from gametape.tasks.mining.suite_analysis import SuiteAnalysis
from gametape.tasks.mining.trial import CandidateRejected, CandidateTrial, ValidCandidate
from gametape.verify.warm_runner import WarmTestRunner

from .promises import assert_gone, assert_kept


@pytest.fixture(scope="module")
def trial(site: ProjectRunner, learned: SuiteAnalysis) -> CandidateTrial:
    return CandidateTrial.for_project(site, learned.baseline, learned.coverage_map, "stub")


@pytest.fixture(scope="module")
def removal(site: ProjectRunner, learned: SuiteAnalysis) -> CandidateTrial:
    return CandidateTrial.for_project(site, learned.baseline, learned.coverage_map, "removal")


def candidate(learned: SuiteAnalysis, seed: str) -> Candidate:
    found = find_candidates(learned.coverage_map, len(learned.baseline.tests), seed=0)
    return next(one for one in found if one.seeds[0].qualname == seed)


def deleted(find: ValidCandidate) -> set[str]:
    return {one.qualname for one in find.deleted}


def failing(find: ValidCandidate) -> set[str]:
    return {test.rpartition("::")[2] for test in (*find.split.visible, *find.split.held_out)}


def rejection(trial: CandidateTrial, tried: Candidate, surveyor: WarmTestRunner) -> CandidateRejected:
    with pytest.raises(CandidateRejected) as caught:
        trial.attempt(tried, surveyor)
    return caught.value


def test_a_single_function(
    site: ProjectRunner, learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner
) -> None:
    find = trial.attempt(candidate(learned, "plain"), surveyor)
    assert deleted(find) == {"plain"}
    assert failing(find) == {"test_plain", "test_plain_tab"}
    assert "NotImplementedError" in find.failure_messages[find.split.visible[0]]
    assert_kept(site, find)
    assert_gone(site, find)


def test_a_function_and_what_only_it_calls(
    site: ProjectRunner, learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner
) -> None:
    find = trial.attempt(candidate(learned, "counted"), surveyor)
    assert deleted(find) == {"counted", "_split"}
    assert_kept(site, find)
    assert_gone(site, find)


def test_a_function_without_which_nothing_fails_stays(
    site: ProjectRunner, learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner
) -> None:
    tried = candidate(learned, "noted")
    assert {one.qualname for one in tried.functions} == {"noted", "_note"}
    find = trial.attempt(tried, surveyor)
    assert deleted(find) == {"noted"}
    assert 'lines.append("end of it")' in find.start.text("tricky/code.py")
    assert_kept(site, find)


def test_tests_that_nobody_expected_to_fail_are_asked_for(
    site: ProjectRunner, learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner
) -> None:
    find = trial.attempt(candidate(learned, "_build"), surveyor)
    assert len(find.predicted_failing) == 2
    assert failing(find) == {"test_one", "test_two", "test_three", "test_four", "test_both"}
    assert_kept(site, find)


def test_what_another_file_caches_hides_no_failing_test(
    site: ProjectRunner, learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner
) -> None:
    find = trial.attempt(candidate(learned, "cached"), surveyor)
    assert failing(find) == {"test_cached", "test_cached_other", "test_cached_nothing"}
    assert_kept(site, find)


def test_a_copy_in_the_sources_goes_too(
    site: ProjectRunner, learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner
) -> None:
    find = trial.attempt(candidate(learned, "merged"), surveyor)
    assert deleted(find) == {"merged", "joined"}
    assert failing(find) == {"test_merged", "test_merged_one", "test_joined", "test_joined_nothing"}
    assert_kept(site, find)
    assert_gone(site, find)


def test_each_part_needs_every_deleted_function(
    learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner
) -> None:
    find = trial.attempt(candidate(learned, "merged"), surveyor)
    for part in (find.split.visible, find.split.held_out):
        assert all(learned.coverage_map.tests[one].intersection(part) for one in find.deleted)


@pytest.mark.parametrize(
    ("seed", "reason", "detail"),
    [
        ("_note", "nothing_fails", "every test passes without it"),
        ("rounded", "no_held_out", "rounded is shown by 3 tests that cannot be told apart"),
        ("quoted", "leak", "quoted stands in README.md:"),
        ("mirrored", "leak", "mirrored stands in tests/test_leaks.py:"),
        ("grouped", "leak", "shelved is a copy that has to stay"),
        ("balanced", "one_is_enough", "restoring tricky/code.py::balanced alone mends everything"),
    ],
)
def test_a_gate_says_what_it_is_about(
    learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner, seed: str, reason: str, detail: str
) -> None:
    why = rejection(trial, candidate(learned, seed), surveyor)
    assert why.reason == reason
    assert detail in str(why)


def test_a_copy_outside_is_a_leak(
    site: ProjectRunner,
    learned: SuiteAnalysis,
    surveyor: WarmTestRunner,
    trial: CandidateTrial,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "copy.py").write_text(site.project.tree.text("tricky/code.py").replace("found", "seen"))
    monkeypatch.setattr("gametape.tasks.mining.trial.visible_roots", lambda _: ([tmp_path], []))
    exposed = CandidateTrial.for_project(site, learned.baseline, learned.coverage_map, "stub")
    why = rejection(exposed, candidate(learned, "counted"), surveyor)
    assert why.reason == "leak"
    assert str(tmp_path / "copy.py") in str(why)


def test_removal_takes_the_name_and_whole_files_fail(
    site: ProjectRunner, learned: SuiteAnalysis, removal: CandidateTrial, surveyor: WarmTestRunner
) -> None:
    find = removal.attempt(candidate(learned, "plain"), surveyor)
    assert "plain" not in find.start.text("tricky/code.py")
    assert "test_noted_small" in failing(find)
    assert_kept(site, find)
    assert_gone(site, find)


@pytest.mark.parametrize("seed", ["plain", "noted", "lookup", "merged"])
def test_in_removal_too_each_part_needs_what_is_deleted(
    learned: SuiteAnalysis, removal: CandidateTrial, surveyor: WarmTestRunner, seed: str
) -> None:
    """Tests that only import the name beside their own do not show it."""
    find = removal.attempt(candidate(learned, seed), surveyor)
    for part in (find.split.visible, find.split.held_out):
        assert all(learned.coverage_map.tests[one].intersection(part) for one in find.deleted)


def test_a_union(site: ProjectRunner, learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner) -> None:
    parts = [candidate(learned, "counted"), candidate(learned, "lookup")]
    (tried,) = union_candidates(parts, 2, seed=0)
    find = trial.attempt(tried, surveyor)
    assert deleted(find) == {"counted", "_split", "lookup", "_build"}
    assert_kept(site, find)
    assert_gone(site, find)


def test_the_same_candidate_gives_the_same_find(
    site: ProjectRunner, learned: SuiteAnalysis, trial: CandidateTrial, surveyor: WarmTestRunner
) -> None:
    fresh = CandidateTrial.for_project(site, learned.baseline, learned.coverage_map, "stub")
    tried = candidate(learned, "lookup")
    one, other = trial.attempt(tried, surveyor), fresh.attempt(tried, surveyor)
    assert (one.start, one.split, one.pass_to_pass) == (other.start, other.split, other.pass_to_pass)
