import dataclasses

from gametape.tasks.mining.project_runner import ProjectRunner
from gametape.tasks.mining.removal.deletion import delete_functions
from gametape.tasks.mining.suite_analysis import SuiteAnalysis
from gametape.tasks.mining.suite_run import SuiteOutcome, changed_files, run_suite, run_tests
from gametape.verify.warm_runner import PytestRequest, PytestResult, WarmTestRunner


class Counting:
    """A surveyor that counts its steps."""

    def __init__(self, surveyor: WarmTestRunner) -> None:
        self._surveyor = surveyor
        self.steps: list[PytestRequest] = []

    def run(self, step: PytestRequest) -> PytestResult:
        self.steps.append(step)
        return self._surveyor.run(step)


def without(site: ProjectRunner, learned: SuiteAnalysis, *names: str) -> tuple[dict[str, bytes], frozenset[str]]:
    """The files that differ without these functions, and the tests that reach them."""
    functions = [one for one in learned.coverage_map.tests if one.qualname in names]
    carved = delete_functions(site.project.tree, functions, "stub", test_paths=site.project.test_paths).tree
    tests = frozenset[str]().union(*(learned.coverage_map.tests[one] for one in functions))
    return changed_files(site.project.tree, carved), tests


def failing(run: SuiteOutcome) -> set[str]:
    return {test.partition("/")[2] for test in run.failing()}


def test_one_process_is_enough_where_everything_goes_as_expected(
    site: ProjectRunner, learned: SuiteAnalysis, surveyor: WarmTestRunner
) -> None:
    laid, expected = without(site, learned, "counted")
    counting = Counting(surveyor)
    run = run_suite(counting, learned.baseline, laid, expected)  # type: ignore[arg-type]
    assert len(counting.steps) == 1
    assert failing(run) == {"test_code.py::test_counted", "test_code.py::test_counted_nothing"}
    assert [*run.results] == [*learned.baseline.tests]
    assert "NotImplementedError" in run.messages["tests/test_code.py::test_counted"]


def test_the_untouched_tree_passes(learned: SuiteAnalysis, surveyor: WarmTestRunner) -> None:
    run = run_suite(surveyor, learned.baseline, {}, ())
    assert set(run.results.values()) == {"passed"}


def test_what_another_file_left_behind_does_not_decide(
    site: ProjectRunner, learned: SuiteAnalysis, surveyor: WarmTestRunner
) -> None:
    """In one process, a test of another file has filled the cache, and nothing is missed."""
    laid, expected = without(site, learned, "_compute")
    counting = Counting(surveyor)
    run = run_suite(counting, learned.baseline, laid, expected)  # type: ignore[arg-type]
    assert failing(run) == {f"test_cached.py::test_cached{more}" for more in ("", "_other", "_nothing")}
    assert [step.paths for step in counting.steps[1:]] == [("tests/test_cached.py",)]


def test_what_is_built_once_breaks_more_than_the_map_says(
    site: ProjectRunner, learned: SuiteAnalysis, surveyor: WarmTestRunner
) -> None:
    laid, expected = without(site, learned, "_build")
    assert len(expected) == 2
    run = run_suite(surveyor, learned.baseline, laid, expected)
    assert failing(run) == {
        *(f"test_lookup.py::test_{name}" for name in ("one", "two", "three")),
        *(f"test_lookup_again.py::test_{name}" for name in ("four", "both")),
    }


def test_files_that_cannot_share_a_process_run_alone(
    site: ProjectRunner, learned: SuiteAnalysis, surveyor: WarmTestRunner
) -> None:
    alone = "tests/test_cached.py"
    baseline = dataclasses.replace(learned.baseline, together=learned.baseline.together - {alone})
    counting = Counting(surveyor)
    run = run_suite(counting, baseline, {}, ())  # type: ignore[arg-type]
    assert [alone in step.paths for step in counting.steps] == [False, True]
    assert set(run.results.values()) == {"passed"}


def test_only_the_tests_that_are_asked_for_run(
    site: ProjectRunner, learned: SuiteAnalysis, surveyor: WarmTestRunner
) -> None:
    laid, expected = without(site, learned, "lookup")
    some = sorted(expected)[::2]
    run = run_tests(surveyor, learned.baseline, laid, some)
    assert set(run.results) == set(some)
    assert set(run.failing()) == set(some)


HANGING = b"""

def noted(value):
    import time
    while value == 11:
        time.sleep(0.1)
    return value * (3 if value == 20 else 2)
"""


def test_a_hanging_test_is_left_out_and_the_others_are_judged(
    site: ProjectRunner, learned: SuiteAnalysis, surveyor: WarmTestRunner
) -> None:
    path = "tricky/code.py"
    laid = {path: site.project.tree.files[path] + HANGING}
    baseline = dataclasses.replace(learned.baseline, slowest=0.2)
    expected = frozenset(test for test in baseline.tests if "noted" in test)
    run = run_suite(surveyor, baseline, laid, expected)
    assert run.hanging() == ["tests/test_code.py::test_noted_large"]
    assert failing(run) == {"test_code.py::test_noted_larger"}
    assert [*run.results] == [*baseline.tests]
