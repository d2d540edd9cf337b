"""The warm test runner, with real pytest processes in a real sandbox."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gametape.record.source_tree import SourceTree
from gametape.verify.jobs import pytest_options
from gametape.verify.warm_runner import PytestRequest, WarmTestRunner

SOURCE = b'''def double(number):
    """Twice."""
    return 2 * number


def half(number):
    return number / 2


LOADED = half(4)
'''
TESTS = b"""import os
import socket
import time

import pytest
from shop import double


def test_double():
    assert double(2) == 4


@pytest.mark.parametrize("number", [1, 3])
def test_odd(number):
    assert double(number) % 2 == 0


def test_wrong():
    assert double(1) == 3


def test_network():
    socket.getaddrinfo("localhost", 80)


def test_outside():
    open("/usr/there", "w")


def test_remove():
    os.remove("shop.py")


def test_sleep():
    time.sleep(600)


def test_leave():
    os._exit(3)
"""
FILE = "tests/test_shop.py"
TREE = SourceTree({"shop.py": SOURCE, FILE: TESTS, "tests/test_broken.py": b"import nowhere\n"})


@pytest.fixture(scope="module")
def runner() -> Iterator[WarmTestRunner]:
    interpreter = Path(sys.executable)
    with WarmTestRunner(TREE, ["."], pytest_options(TREE, None), interpreter) as made:
        yield made


def request_tests(*names: str, **more: object) -> PytestRequest:
    return PytestRequest((FILE,), tuple(f"{FILE}::{name}" for name in names), **more)  # type: ignore[arg-type]


def test_it_finds_tests_and_what_cannot_be_read(runner: WarmTestRunner) -> None:
    result = runner.run(PytestRequest(("tests",), collect=True))
    assert f"{FILE}::test_odd[3]" in result.collected
    assert len(result.collected) == 9
    assert [*result.collection_errors] == ["tests/test_broken.py"]
    assert "nowhere" in result.collection_errors["tests/test_broken.py"]
    assert result.finished


def test_it_runs_only_what_is_wanted(runner: WarmTestRunner) -> None:
    result = runner.run(request_tests("test_double", "test_wrong"))
    assert {test.partition("::")[2]: result.result(test) for test in result.outcomes} == {
        "test_double": "passed",
        "test_wrong": "failed",
    }
    assert "assert 2 == 3" in result.message(f"{FILE}::test_wrong")


def test_laid_files_are_there_for_one_step_only(runner: WarmTestRunner) -> None:
    worse = runner.run(request_tests("test_double", laid={"shop.py": b"def double(number):\n    return 3 * number\n"}))
    again = runner.run(request_tests("test_double"))
    assert worse.result(f"{FILE}::test_double") == "failed"
    assert again.result(f"{FILE}::test_double") == "passed"


def test_it_says_which_test_reaches_which_function(runner: WarmTestRunner) -> None:
    result = runner.run(request_tests("test_double", "test_odd[1]", spans={"shop.py": [(3, 3), (7, 7)]}))
    double, half = result.reached["shop.py"]
    assert double == [f"{FILE}::test_double", f"{FILE}::test_odd[1]"]
    assert half == [""], "runs when the module is imported"


def test_it_sees_what_tests_do_to_the_world(runner: WarmTestRunner) -> None:
    result = runner.run(request_tests("test_double", "test_network", "test_outside", watch=True))
    assert result.side_effects == {"network": [f"{FILE}::test_network"], "outside": [f"{FILE}::test_outside"]}


def test_it_says_which_files_were_changed_and_restores_them(runner: WarmTestRunner) -> None:
    assert runner.run(request_tests("test_remove")).changed_files == ("shop.py",)
    assert runner.run(request_tests("test_double")).result(f"{FILE}::test_double") == "passed"


def test_what_hangs_is_late_and_the_next_step_has_its_full_time(runner: WarmTestRunner) -> None:
    hung = runner.run(request_tests("test_double", "test_sleep", seconds=4.0))
    assert hung.timed_out
    assert hung.result(f"{FILE}::test_double") == "passed"
    assert hung.result(f"{FILE}::test_sleep") == "timed_out"
    assert runner.run(request_tests("test_double")).finished


def test_a_process_that_leaves_has_not_finished(runner: WarmTestRunner) -> None:
    left = runner.run(request_tests("test_leave"))
    assert (left.finished, left.timed_out) == (False, False)
    assert left.result(f"{FILE}::test_leave") == "missing"


def test_a_setting_nobody_knows_is_no_failure() -> None:
    tree = SourceTree({**TREE.files, "pytest.ini": b"[pytest]\nfilterwarnings = error\nunknown_to_us = 1\n"})
    with WarmTestRunner(tree, ["."], pytest_options(tree, None), Path(sys.executable)) as runner:
        assert runner.run(request_tests("test_double")).result(f"{FILE}::test_double") == "passed"


def test_a_conftest_that_cannot_be_read_is_told() -> None:
    tree = SourceTree({**TREE.files, "conftest.py": b"import nowhere\n"})
    with WarmTestRunner(tree, ["."], pytest_options(tree, None), Path(sys.executable)) as runner:
        result = runner.run(PytestRequest(("tests",), collect=True))
    assert "nowhere" in result.collection_errors[""]
