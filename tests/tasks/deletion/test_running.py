import dataclasses

from gametape.tasks.deletion.carving.carving import carve
from gametape.tasks.deletion.learned import Learned
from gametape.tasks.deletion.running import SuiteRun, changed, run_suite, run_tests
from gametape.tasks.deletion.site import Site
from gametape.verify.survey import Findings, Survey, Surveyor


class Counting:
    """A surveyor that counts its steps."""

    def __init__(self, surveyor: Surveyor) -> None:
        self._surveyor = surveyor
        self.steps: list[Survey] = []

    def run(self, step: Survey) -> Findings:
        self.steps.append(step)
        return self._surveyor.run(step)


def without(site: Site, learned: Learned, *names: str) -> tuple[dict[str, bytes], frozenset[str]]:
    """The files that differ without these functions, and the tests that reach them."""
    functions = [one for one in learned.reached.tests if one.qualname in names]
    carved = carve(site.project.tree, functions, "stub", test_paths=site.project.test_paths).tree
    tests = frozenset[str]().union(*(learned.reached.tests[one] for one in functions))
    return changed(site.project.tree, carved), tests


def failing(run: SuiteRun) -> set[str]:
    return {test.partition("/")[2] for test in run.failing()}


def test_one_process_is_enough_where_everything_goes_as_expected(
    site: Site, learned: Learned, surveyor: Surveyor
) -> None:
    laid, expected = without(site, learned, "counted")
    counting = Counting(surveyor)
    run = run_suite(counting, learned.baseline, laid, expected)  # type: ignore[arg-type]
    assert len(counting.steps) == 1
    assert failing(run) == {"test_code.py::test_counted", "test_code.py::test_counted_nothing"}
    assert [*run.results] == [*learned.baseline.tests]
    assert "NotImplementedError" in run.messages["tests/test_code.py::test_counted"]


def test_the_untouched_tree_passes(learned: Learned, surveyor: Surveyor) -> None:
    run = run_suite(surveyor, learned.baseline, {}, ())
    assert set(run.results.values()) == {"passed"}


def test_what_another_file_left_behind_does_not_decide(site: Site, learned: Learned, surveyor: Surveyor) -> None:
    """In one process, a test of another file has filled the cache, and nothing is missed."""
    laid, expected = without(site, learned, "_compute")
    counting = Counting(surveyor)
    run = run_suite(counting, learned.baseline, laid, expected)  # type: ignore[arg-type]
    assert failing(run) == {f"test_cached.py::test_cached{more}" for more in ("", "_other", "_nothing")}
    assert [step.paths for step in counting.steps[1:]] == [("tests/test_cached.py",)]


def test_what_is_built_once_breaks_more_than_the_map_says(site: Site, learned: Learned, surveyor: Surveyor) -> None:
    laid, expected = without(site, learned, "_build")
    assert len(expected) == 2
    run = run_suite(surveyor, learned.baseline, laid, expected)
    assert failing(run) == {
        *(f"test_lookup.py::test_{name}" for name in ("one", "two", "three")),
        *(f"test_lookup_again.py::test_{name}" for name in ("four", "both")),
    }


def test_files_that_cannot_share_a_process_run_alone(site: Site, learned: Learned, surveyor: Surveyor) -> None:
    alone = "tests/test_cached.py"
    baseline = dataclasses.replace(learned.baseline, together=learned.baseline.together - {alone})
    counting = Counting(surveyor)
    run = run_suite(counting, baseline, {}, ())  # type: ignore[arg-type]
    assert [alone in step.paths for step in counting.steps] == [False, True]
    assert set(run.results.values()) == {"passed"}


def test_only_the_tests_that_are_asked_for_run(site: Site, learned: Learned, surveyor: Surveyor) -> None:
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


def test_a_hanging_test_is_left_out_and_the_others_are_judged(site: Site, learned: Learned, surveyor: Surveyor) -> None:
    path = "tricky/code.py"
    laid = {path: site.project.tree.files[path] + HANGING}
    baseline = dataclasses.replace(learned.baseline, slowest=0.2)
    expected = frozenset(test for test in baseline.tests if "noted" in test)
    run = run_suite(surveyor, baseline, laid, expected)
    assert run.hanging() == ["tests/test_code.py::test_noted_large"]
    assert failing(run) == {"test_code.py::test_noted_larger"}
    assert [*run.results] == [*baseline.tests]
