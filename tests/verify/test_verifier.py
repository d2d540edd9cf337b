"""From a workspace to a verdict, with everything real: sandboxes, pytest, tools."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gametape.core.verdict import Verdict
from gametape.verify.layers.profiles import Profile
from gametape.verify.runner import ZygotePool
from gametape.verify.verifier import Verifier
from tests.verify.small_task import RIGHT, START, small_task, workspace


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory, prepared_home: Callable[[Path], Path]) -> Iterator[Verifier]:
    home = prepared_home(tmp_path_factory.mktemp("home"))
    with ZygotePool(2) as zygotes, Verifier(small_task(), home, zygotes) as verifier:
        yield verifier


def verify(verifier: Verifier, directory: Path, source: str, profile: Profile = "train") -> Verdict:
    return verifier.verify(workspace(directory, source), profile)


def rules(verdict: Verdict) -> set[str]:
    return {flag.rule for flag in verdict.integrity}


def test_a_right_one_passes_with_everything_it_can_get(verifier: Verifier, tmp_path: Path) -> None:
    verdict = verify(verifier, tmp_path, RIGHT, "full")
    assert verdict.passed
    assert verdict.reward == 1.0
    assert (verdict.tests.expected, verdict.tests.passed) == (7, 7)
    assert (verdict.tests.held_out_expected, verdict.tests.held_out_passed) == (3, 3)
    assert [check.score for check in verdict.checks] == [1.0] * len(verdict.checks)
    assert {check.name for check in verdict.checks} >= {"tests", "types", "lint", "runtime", "diff", "quality"}
    assert (verdict.mode, verdict.assurance, verdict.integrity, verdict.signals) == ("shared", "medium", [], [])


def test_an_untouched_one_earns_nothing(verifier: Verifier, tmp_path: Path) -> None:
    verdict = verify(verifier, tmp_path, START)
    assert (verdict.passed, verdict.reward, verdict.integrity) == (False, 0.0, [])
    assert (verdict.tests.passed, verdict.tests.failed) == (1, 6)


def test_an_honest_part_is_paid_in_part_and_only_signalled(verifier: Verifier, tmp_path: Path) -> None:
    verdict = verify(verifier, tmp_path, RIGHT.replace("return a + b", "return int(a) + int(b)"))
    assert not verdict.passed
    assert 0.5 < verdict.reward < 1
    assert verdict.tests.held_out_passed == 2
    assert not verdict.integrity
    assert [signal.name for signal in verdict.signals] == ["held-out gap"]


def test_breaking_what_worked_costs(verifier: Verifier, tmp_path: Path) -> None:
    verdict = verify(verifier, tmp_path, RIGHT.replace("2 * n", "3 * n"))
    assert (verdict.passed, verdict.reward) == (False, 0.0)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("def add(:\n", "failed"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "missing"),
        ("", "failed"),
        (RIGHT.replace("return a + b", "while True: pass"), "timed_out"),
        (RIGHT.replace("return a + b", "import time; time.sleep(1000)"), "timed_out"),
    ],
    ids=["syntax", "crash", "empty", "busy", "asleep"],
)
def test_nothing_broken_is_a_pass(verifier: Verifier, tmp_path: Path, source: str, result: str) -> None:
    verdict = verify(verifier, tmp_path, source)
    assert not verdict.passed
    assert verdict.reward <= 0
    assert getattr(verdict.tests, result) > 0


FORGED = {
    "results": """
import _pytest.reports
original = _pytest.reports.TestReport.from_item_and_call.__func__
def forged(cls, item, call):
    report = original(cls, item, call)
    report.outcome, report.longrepr = "passed", None
    return report
_pytest.reports.TestReport.from_item_and_call = classmethod(forged)
""",
    "bodies": """
import _pytest.python
_pytest.python.Function.runtest = lambda self: None
""",
    "at run time only": """
import importlib
def add(a, b):
    letters = [95, 112, 121, 116, 101, 115, 116, 46, 112, 121, 116, 104, 111, 110]
    module = importlib.import_module("".join(map(chr, letters)))
    module.Function.runtest = lambda self: None
    return 5
""",
}


@pytest.mark.parametrize("patch", FORGED.values(), ids=FORGED)
def test_forged_results_contradict_themselves(verifier: Verifier, tmp_path: Path, patch: str) -> None:
    verdict = verify(verifier, tmp_path, START + patch)
    assert not verdict.passed
    assert verdict.reward == -1.0
    assert "runner.forged-outcome" in rules(verdict) or any(rule.startswith("runner.") for rule in rules(verdict))


def test_what_equals_everything_contradicts_itself(verifier: Verifier, tmp_path: Path) -> None:
    source = """
class Any:
    def __eq__(self, other): return bool(other) or not other
    __hash__ = None
def add(a, b): return Any()
def name(n):
    if n < 0: raise ValueError
    return Any()
def twice(n): return 2 * n
"""
    verdict = verify(verifier, tmp_path, source)
    assert (verdict.passed, verdict.reward) == (False, -1.0)
    assert any(rule.startswith("equality.") for rule in rules(verdict))


def test_chance_is_quarantined_and_accuses_nobody(verifier: Verifier, tmp_path: Path) -> None:
    source = RIGHT.replace("return a + b", "import random; return a + b if random.random() < 0.5 else None")
    seen = []
    for number in range(6):
        directory = tmp_path / str(number)
        directory.mkdir()
        verdict = verify(verifier, directory, f"{source}# {number}\n", "full")
        assert not verdict.integrity
        assert not verdict.passed or not verdict.quarantined
        seen.append(verdict.quarantined)
    assert any(seen)


def test_the_same_bytes_get_the_same_verdict_from_the_cache(verifier: Verifier, tmp_path: Path) -> None:
    first = verify(verifier, tmp_path, RIGHT.replace("many", "plenty"))
    again = verifier.verify(tmp_path, "train")
    assert (first.cached, again.cached) == (False, True)
    assert again == first.model_copy(update={"cached": True, "seconds": again.seconds})
    (tmp_path / "notes.txt").write_text("anything else in the workspace is another workspace\n")
    assert not verifier.verify(tmp_path, "train").cached


def test_a_verdict_that_ran_out_of_time_is_not_kept(verifier: Verifier, tmp_path: Path) -> None:
    source = RIGHT.replace("return a + b", "while True: pass  # again")
    assert verify(verifier, tmp_path, source).tests.timed_out
    assert not verifier.verify(tmp_path, "train").cached
