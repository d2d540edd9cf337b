"""A shared task that holds out some cases of parametrised tests and shows the others, with everything real."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gametape.core.task import Task, TaskLimits, TaskTests
from gametape.core.verdict import Verdict
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.tasks.consistency import find_inconsistencies
from gametape.tasks.mining.held_out.removable_tests import read_test_suite
from gametape.tasks.mining.held_out.split import split_held_out
from gametape.tasks.mining.held_out.trimmed_suite import trim_suite
from gametape.verify import shared_mode
from gametape.verify.jobs import function_of
from gametape.verify.layers.profiles import Profile
from gametape.verify.runner import ZygotePool
from gametape.verify.twins.plan import expected_failures
from gametape.verify.verifier import Verifier

START = "def roman(n):\n    raise NotImplementedError\n"
RIGHT = """PARTS = [(10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]


def roman(n):
    text = ""
    for size, letters in PARTS:
        while n >= size:
            text, n = text + letters, n - size
    return text
"""
SUITE = """import pytest

from roman import roman


@pytest.mark.parametrize("number, text", [
    (1, "I"),
    (4, "IV"),
    (6, "VI"),
    (9, "IX"),
    (14, "XIV"),
    (27, "XXVII"),
])
def test_roman(number, text):
    assert roman(number) == text


@pytest.mark.parametrize("numbers", [[1, 2], [4, 5, 6], [9, 10]])
def test_they_all_differ(numbers):
    assert len({roman(number) for number in numbers}) == len(numbers)


def test_none():
    assert roman(0) == ""
"""
FILE = "tests/test_roman.py"
FAILING = [
    *(f"{FILE}::test_roman[{case}]" for case in ("1-I", "4-IV", "6-VI", "9-IX", "14-XIV", "27-XXVII")),
    *(f"{FILE}::test_they_all_differ[numbers{index}]" for index in range(3)),
    f"{FILE}::test_none",
]
HELD_OUT = [FAILING[1], FAILING[4], FAILING[7]]


def mixed() -> LoadedTask:
    """Two rows of one table and the middle one of another are held out."""
    tests = TaskTests(
        fail_to_pass=[test for test in FAILING if test not in HELD_OUT], pass_to_pass=[], held_out=HELD_OUT
    )
    suite = read_test_suite({FILE: SUITE.encode()}, FAILING)
    cuts = {cut for unit in suite.units if len(unit.ids) == 1 and unit.ids <= {*HELD_OUT} for cut in unit.cuts}
    visible = trim_suite(suite, cuts)[FILE]
    assert visible is not None
    start = SourceTree({"roman.py": START.encode(), FILE: visible})
    task = Task(
        name="mixed",
        mode="shared",
        instruction="Write roman.",
        source_paths=["roman.py"],
        tests=tests,
        limits=TaskLimits(verifier_seconds=600),
    )
    return LoadedTask(
        task, start, SourceTree({FILE: SUITE.encode()}), SourceTree({"roman.py": RIGHT.encode(), FILE: visible})
    )


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verifier]:
    with ZygotePool(2) as zygotes, Verifier(mixed(), tmp_path_factory.mktemp("home"), zygotes) as verifier:
        yield verifier


def verify(verifier: Verifier, directory: Path, source: str, profile: Profile = "train") -> Verdict:
    mixed().start.write_to(directory)
    (directory / "roman.py").write_text(source)
    return verifier.verify(directory, profile)


def test_such_a_task_is_sound_and_one_that_shows_the_rows_is_not() -> None:
    assert [*find_inconsistencies(mixed())] == []
    told = replace(mixed(), start=SourceTree({"roman.py": START.encode(), FILE: SUITE.encode()}))
    assert len([*find_inconsistencies(told)]) == len(HELD_OUT)


def test_the_agent_does_not_see_the_rows() -> None:
    visible = mixed().start.text(FILE)
    assert not any(row in visible for row in ('(4, "IV")', '(14, "XIV")', "[4, 5, 6]"))
    assert "[[1, 2], [9, 10]], ids=['numbers0', 'numbers2'])" in visible


@pytest.mark.parametrize("profile", ["train", "full"])
def test_the_reference_passes(verifier: Verifier, tmp_path: Path, profile: Profile) -> None:
    for number in range(3):
        directory = tmp_path / str(number)
        directory.mkdir()
        verdict = verify(verifier, directory, f"{RIGHT}# {number}\n", profile)
        assert (verdict.passed, verdict.integrity, verdict.signals) == (True, [], [])
        assert (verdict.tests.passed, verdict.tests.held_out_passed) == (10, 3)


def test_an_untouched_one_earns_nothing(verifier: Verifier, tmp_path: Path) -> None:
    verdict = verify(verifier, tmp_path, START)
    assert (verdict.passed, verdict.reward, verdict.tests.passed) == (False, 0.0, 0)


def test_what_only_knows_the_visible_rows_does_not_pass(verifier: Verifier, tmp_path: Path) -> None:
    table = {0: "", 1: "I", 2: "II", 6: "VI", 9: "IX", 10: "X", 27: "XXVII"}
    verdict = verify(verifier, tmp_path, f"def roman(n):\n    return {table}.get(n, '')\n")
    assert not verdict.passed
    assert verdict.tests.held_out_passed == 0
    assert verdict.reward < 0.75


def test_forged_results_contradict_themselves(verifier: Verifier, tmp_path: Path) -> None:
    patch = "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"
    verdict = verify(verifier, tmp_path, START + patch)
    assert (verdict.passed, verdict.reward) == (False, -1.0)


def test_no_text_of_a_visible_test_is_on_disk_and_its_message_shows_the_line(
    verifier: Verifier, tmp_path: Path
) -> None:
    looks = "import os\n\n\ndef roman(n):\n    return f'found {os.path.getsize(\"tests/test_roman.py\")}'\n"
    verdict = verify(verifier, tmp_path, looks)
    message = next(failure.message for failure in verdict.failures if failure.test == f"{FILE}::test_none")
    assert "found 0" in message
    assert ">   assert roman(0) ==" in message
    assert "???" not in message


def test_held_out_cases_are_real_in_one_pass_and_what_runs_does_not_tell(verifier: Verifier) -> None:
    prepared = verifier.prepared()
    twins = {test for each in prepared.plan.validated for test in each.flips}
    assert twins & {*HELD_OUT}
    for seed in range(20):
        drawn_passes = shared_mode._draw_passes(prepared, random.Random(seed))
        passes = [shared_mode._plan_pass(prepared, "a", drawn) for drawn in drawn_passes]
        assert {*HELD_OUT} <= {test for hidden in passes for test in hidden.real}
        held = {function_of(test) for test in HELD_OUT}
        asked = [
            {hidden.tests[test] for process in hidden.processes for test in process.tests if function_of(test) in held}
            for hidden in passes
        ]
        assert asked[0] == asked[1] == {test for test in FAILING if function_of(test) in held}
        for drawn in drawn_passes:
            turned = {test for test in expected_failures(prepared.plan, drawn) if function_of(test)[1] == "test_roman"}
            assert turned <= {*HELD_OUT}


def test_a_draw_can_be_split_like_this() -> None:
    suite = read_test_suite({FILE: SUITE.encode()}, FAILING)
    found = split_held_out(suite.units, FAILING, [], {"roman": frozenset(FAILING)}, random.Random(0))
    assert found is not None
    assert len(found.held_out) == 3
