"""How each test of a task runs, and what that makes of a verdict."""

import pytest

from gametape.core.task import SplitSurface, Task, TaskTests
from gametape.core.verdict import FreshCalls
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify.assurance import assurance_level, describe_assurance
from gametape.verify.replay.recording import Recording
from gametape.verify.replay.store import NotReplayable
from gametape.verify.replay.transcript import Transcript
from gametape.verify.test_ways import TestWays, choose_ways, restrict_task

VISIBLE = [f"tests/test_a.py::test_{number}" for number in range(4)]
HELD_OUT = [f"tests/test_b.py::test_{number}" for number in range(4)]
TESTS = TaskTests(fail_to_pass=VISIBLE, pass_to_pass=["tests/test_c.py::test_old"], held_out=HELD_OUT)


def task(mode: str = "replay") -> Task:
    surface = SplitSurface(modules=["m"]) if mode == "split" else None
    return Task(name="t", mode=mode, instruction="", source_paths=["m.py"], tests=TESTS, split=surface)  # type: ignore[arg-type]


def ways(replayed: list[str], live: list[str] = [], mode: str = "replay") -> TestWays:  # noqa: B006
    recording = Recording(
        SplitSurface(modules=["m"]),
        transcripts={test: Transcript(test, (), 0.0) for test in replayed},
        live=frozenset(live),
        reasons={test: NotReplayable("callback", "") for test in TESTS.every if test not in replayed},
    )
    return choose_ways(task(mode), recording)


@pytest.mark.parametrize(
    ("replayed", "live", "mode"),
    [
        (VISIBLE + HELD_OUT, [], "replay"),
        (VISIBLE[:2] + HELD_OUT[:2], [], "replay"),
        (VISIBLE[:1] + HELD_OUT, [], "shared"),
        (VISIBLE + HELD_OUT[:1], [], "shared"),
        (VISIBLE[:1] + HELD_OUT, VISIBLE[1:2], "split"),
        ([], VISIBLE + HELD_OUT, "split"),
        ([], [], "shared"),
    ],
)
def test_half_of_both_kinds_has_to_decide(replayed: list[str], live: list[str], mode: str) -> None:
    assert ways(replayed, live).mode(TESTS) == mode


def test_what_shares_a_process_confirms_where_others_decide() -> None:
    some = ways(VISIBLE[:3] + HELD_OUT)
    assert some.confirming(TESTS) == VISIBLE[3:]
    assert some.count(TESTS.every) == {"replay": 7, "split": 0, "shared": 2}
    assert some.count_reasons() == {"callback": 2}
    assert ways(VISIBLE[:1]).confirming(TESTS) == []


def test_a_task_in_split_mode_never_shares_a_process() -> None:
    assert set(ways(VISIBLE, mode="split").by_test.values()) == {"replay", "split"}
    assert set(choose_ways(task("split"), None).by_test.values()) == {"split"}
    assert set(choose_ways(task("shared"), None).by_test.values()) == {"shared"}
    assert choose_ways(task("shared"), None).count_reasons() == {"mode": 9}
    assert choose_ways(task("replay"), None).count_reasons() == {"reference": 9}


def test_tests_that_run_elsewhere_leave_no_file_behind() -> None:
    suite = SourceTree({f"tests/test_{name}.py": f"import {name}".encode() for name in "abc"})
    helper = SourceTree({"tests/helpers.py": b"from tests.test_c import X"})
    loaded = LoadedTask(task(), suite.overlaid_on(helper), suite.overlaid_on(helper))
    rest = restrict_task(loaded, VISIBLE[3:])
    assert set(rest.suite) == {"tests/test_a.py", "tests/test_c.py", "tests/helpers.py"}, "an imported file stays"
    assert rest.task.tests.every == VISIBLE[3:]
    assert set(rest.start) == set(rest.suite)


def test_assurance_says_what_was_and_was_not_excluded() -> None:
    fresh = FreshCalls(calls=24, agreed=24)
    everything = ways(VISIBLE + HELD_OUT)
    assert assurance_level("replay", TESTS, 0, fresh) == "high"
    assert describe_assurance(everything, TESTS, 0, fresh) == (
        "of 8 tests of the feature: 8 by replay; the code that was judged had no expected value of the tests that "
        "decide; 4 held-out tests, 24 fresh calls"
    )
    some = describe_assurance(ways(VISIBLE[:3] + HELD_OUT), TESTS, 2, None)
    assert "1 in one process with the code" in some
    assert "can lower the reward and cannot raise it" in some
    bare = TaskTests(fail_to_pass=VISIBLE, pass_to_pass=[])
    assert assurance_level("replay", bare, 0, None) == "medium"
    assert "a table of the visible answers is not excluded" in describe_assurance(everything, bare, 0, None)
    shared = choose_ways(task("shared"), None)
    assert assurance_level("shared", TESTS, 3, None) == "medium"
    assert assurance_level("shared", TESTS, 0, None) == assurance_level("shared", bare, 3, None) == "low"
    assert "forged results are not excluded" in describe_assurance(shared, TESTS, 0, None)
    assert "reading them there is not excluded" in describe_assurance(shared, TESTS, 3, None)
