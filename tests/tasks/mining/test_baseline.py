from pathlib import Path

import pytest

from gametape.tasks.mining import baseline as module
from gametape.tasks.mining.baseline import SuiteBaseline
from gametape.tasks.mining.suite_analysis import SuiteAnalysis
from gametape.tasks.project import ProjectRefused
from gametape.verify.jobs import group_by_file

from .made import around, baseline_of

FINE = """
import pytest
from shelf import twice

@pytest.mark.parametrize("number", range(240))
def test_twice(number):
    assert twice(number) == 2 * number
"""
CHANCE = """
import os, pytest

@pytest.mark.parametrize("number", range(24))
def test_chance(number):
    assert os.urandom(1)[0] % 2
"""
ORDER = """
SEEN = []

def test_first():
    SEEN.append(1)

def test_second():
    assert SEEN

def test_third():
    assert SEEN
"""
NAMES = """
import pytest

@pytest.mark.parametrize("one", [object()], ids=repr)
def test_address(one):
    pass

@pytest.mark.parametrize("pair", [*enumerate({"ab", "cd", "ef", "gh", "ij", "kl", "mn", "op"})], ids=str)
def test_order_of_a_set(pair):
    pass

@pytest.mark.parametrize("one", ["stays"])
def test_name(one):
    pass
"""
SKIPPED = """
import sys, pytest

@pytest.mark.skip
def test_skipped():
    pass

def test_skips_itself():
    pytest.skip("not here")

@pytest.mark.xfail(strict=False)
def test_known_to_fail():
    assert False
"""
NETWORK = """
import socket, urllib.request

def test_connects():
    socket.create_connection(("192.0.2.1", 80), timeout=1)

def test_asks_for_a_name():
    urllib.request.urlopen("http://example.org/", timeout=1)
"""
OUTSIDE = """
import os, pathlib

def test_writes_to_the_system():
    pathlib.Path("/etc/shelf").write_text("x")

def test_writes_above():
    open("../shelf", "w").close()

def test_makes_a_directory():
    os.mkdir("/opt/shelf")
"""
INSIDE = """
import pathlib

def test_own_temporary_file(tmp_path):
    (tmp_path / "new").write_text("x")

def test_new_file_in_the_code_base():
    pathlib.Path("new").write_text("x")

def test_that_it_is_gone():
    assert not pathlib.Path("never").exists()
"""
MISSING = """
def test_needs_a_module():
    import no_such_module_anywhere

def test_does_not():
    pass
"""
SICK = around(
    FINE,
    tests__test_chance=CHANCE,
    tests__test_order=ORDER,
    tests__test_names=NAMES + SKIPPED,
    tests__test_sleeps="import time\n\ndef test_sleeps():\n    time.sleep(1000)\n",
    tests__test_exits="import os\n\ndef test_exits():\n    os._exit(0)\n\ndef test_after():\n    pass\n",
    tests__test_inside=INSIDE,
    tests__test_deletes="import os\n\ndef test_deletes():\n    os.remove('tests/test_deletes.py')\n",
    tests__test_red=NETWORK + OUTSIDE + MISSING + "\ndef test_red():\n    assert 1 == 2\n",
    tests__test_a_leaves="import shelf\n\ndef test_leaves_something():\n    shelf.left = True\n",
    tests__test_minds="import shelf\n\ndef test_minds():\n    assert not hasattr(shelf, 'left')\n",
    tests__test_unreadable="import no_such_module_anywhere\n\ndef test_never():\n    pass\n",
)


@pytest.fixture(scope="module")
def sick(interpreter: Path) -> SuiteBaseline:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FIRST_RUN_SECONDS", 5.0)
        return baseline_of(SICK, interpreter)


def names(tests: tuple[str, ...]) -> set[str]:
    return {test.partition("/")[2] for test in tests}


@pytest.mark.parametrize(
    ("reason", "tests"),
    [
        ("hangs", {"test_sleeps.py::test_sleeps"}),
        ("crashes", {"test_exits.py::test_exits", "test_exits.py::test_after"}),
        ("needs_network", {"test_red.py::test_connects", "test_red.py::test_asks_for_a_name"}),
        (
            "writes_outside",
            {
                "test_red.py::test_writes_to_the_system",
                "test_red.py::test_writes_above",
                "test_red.py::test_makes_a_directory",
            },
        ),
        ("changes_files", {"test_deletes.py::test_deletes"}),
        ("missing_dependency", {"test_red.py::test_needs_a_module"}),
        ("skipped", {"test_names.py::test_skipped", "test_names.py::test_skips_itself"}),
    ],
)
def test_a_test_is_set_aside_with_its_reason(sick: SuiteBaseline, reason: str, tests: set[str]) -> None:
    assert names(sick.set_aside[reason]) >= tests
    assert tests.isdisjoint(names(sick.tests))


def test_what_just_fails_is_red(sick: SuiteBaseline) -> None:
    assert "test_red.py::test_red" in names(sick.set_aside["red_baseline"])


def test_what_is_known_to_fail_is_not_asked_for(sick: SuiteBaseline) -> None:
    assert "test_names.py::test_known_to_fail" not in names(sick.tests)


def test_chance_is_found_out(sick: SuiteBaseline) -> None:
    """Each of 24 tests passes five runs by luck once in 32 times."""
    lucky = [test for test in names(sick.tests) if test.startswith("test_chance")]
    assert len(lucky) < 8
    assert len([test for test in names(sick.set_aside["flaky"]) if test.startswith("test_chance")]) > 1


def test_order_is_found_out(sick: SuiteBaseline) -> None:
    moody = names(sick.set_aside["order"])
    assert {"test_order.py::test_second", "test_order.py::test_third"} & moody
    assert "test_order.py::test_first" in names(sick.tests)


def test_names_that_change_are_set_aside(sick: SuiteBaseline) -> None:
    unstable = names(sick.set_aside["unstable_id"])
    assert any("test_address" in test for test in unstable)
    assert any("test_order_of_a_set" in test for test in unstable)
    assert "test_names.py::test_name[stays]" in names(sick.tests)


def test_neighbours_of_a_sick_test_stay(sick: SuiteBaseline) -> None:
    stay = names(sick.tests)
    assert {"test_red.py::test_does_not", *(f"test_it.py::test_twice[{number}]" for number in range(240))} <= stay
    assert {test for test in stay if test.startswith("test_inside.py")} == {
        "test_inside.py::test_own_temporary_file",
        "test_inside.py::test_new_file_in_the_code_base",
        "test_inside.py::test_that_it_is_gone",
    }


def test_every_test_is_either_reliable_or_set_aside_once(sick: SuiteBaseline) -> None:
    aside = [test for tests in sick.set_aside.values() for test in tests]
    assert sorted([*aside, *sick.tests]) == sorted(sick.collected)


def test_flaky_counts_chance_order_and_names(sick: SuiteBaseline) -> None:
    assert sick.flaky == sum(len(sick.set_aside[reason]) for reason in ("flaky", "order", "unstable_id"))


def test_files_that_disturb_each_other_in_one_process_are_kept_apart(sick: SuiteBaseline) -> None:
    assert "tests/test_minds.py::test_minds" in sick.tests
    assert "tests/test_minds.py" not in sick.together
    assert {"tests/test_a_leaves.py", "tests/test_it.py"} <= sick.together


def test_a_healthy_suite_is_reliable_as_a_whole(learned: SuiteAnalysis) -> None:
    found = learned.baseline
    assert found.tests == found.collected
    assert found.set_aside == {}
    assert found.flaky == 0
    assert found.together == set(found.seconds) == set(group_by_file(found.tests))


def refusal(files: dict[str, str], interpreter: Path) -> ProjectRefused:
    with pytest.raises(ProjectRefused) as caught:
        baseline_of(files, interpreter)
    return caught.value


def suite_with(red: int, green: int) -> dict[str, str]:
    """So many tests of each kind."""
    return around(
        f"import pytest\n\n@pytest.mark.parametrize('number', range({red + green}))\n"
        f"def test_it(number):\n    assert number >= {red}\n"
    )


def test_one_in_twenty_may_be_red(interpreter: Path) -> None:
    found = baseline_of(suite_with(2, 38), interpreter)
    assert len(found.tests) == 38
    assert len(found.set_aside["red_baseline"]) == 2


def test_more_are_refused_with_an_example(interpreter: Path) -> None:
    why = refusal(suite_with(3, 37), interpreter)
    assert why.reason == "red_baseline"
    assert "3 of 40 tests cannot be relied on: they fail before anything was deleted" in str(why)
    assert "one is tests/test_it.py::test_it[0]" in str(why)


def test_a_suite_that_reads_as_nothing_is_refused(interpreter: Path) -> None:
    missing = refusal(around("import no_such_module_anywhere\n\ndef test_it():\n    pass\n"), interpreter)
    assert missing.reason == "missing_dependency"
    assert "No module named 'no_such_module_anywhere'" in str(missing)
    broken = refusal(around("import helper\n\ndef test_it():\n    pass\n", tests__helper="def (:\n"), interpreter)
    assert broken.reason == "syntax_error"
    assert refusal(around("def helper():\n    pass\n"), interpreter).reason == "no_tests"


def test_reading_tests_that_never_ends(interpreter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_RUN_SECONDS", 1.0)
    why = refusal(around("while True:\n    pass\n\ndef test_it():\n    pass\n"), interpreter)
    assert why.reason == "hangs"
