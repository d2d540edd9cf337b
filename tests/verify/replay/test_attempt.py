"""Verdicts' tests by replay."""

from collections.abc import Callable

import pytest

from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay.attempt import ReplayedTests
from tests.verify.replay.shelf_task import RIGHT, held_out, visible

Replay = Callable[[str], ReplayedTests]


def results(replayed: ReplayedTests) -> dict[str, str]:
    return {test: outcome.result for test, outcome in replayed.outcomes.items()}


def test_the_reference_passes_without_a_test_runner(replay: Replay) -> None:
    replayed = replay(RIGHT)
    assert set(results(replayed).values()) == {"passed"}
    assert len(replayed.outcomes) == 10
    assert replayed.live == {visible("noise")}  # the one without a steady transcript
    assert not replayed.differences
    assert not any(run.events or run.violations for run in replayed.runs)


def test_a_wrong_answer_fails_and_is_told_to_graders(replay: Replay) -> None:
    replayed = replay(RIGHT.replace("return sum(numbers)", "return sum(numbers) + 1"))
    failed = {test for test, result in results(replayed).items() if result == "failed"}
    assert failed == {visible("total"), held_out("empty")}
    difference = replayed.differences[held_out("empty")]
    assert difference.request[2:4] == (words.CALL, (difference.request[3][0], ([],), None))
    assert (difference.expected[2], difference.actual[2]) == (0, 1)


def test_a_missing_name_fails_every_test_of_the_file_that_imports_it(replay: Replay) -> None:
    replayed = replay(RIGHT.replace("class Full", "class Fuller"))
    failed = {test for test, result in results(replayed).items() if result == "failed"}
    assert failed == {test for test in replayed.outcomes if test.startswith("tests/test_shelf")}


def test_what_a_test_does_not_look_at_may_differ(replay: Replay) -> None:
    replayed = replay(RIGHT.replace("a / b, ", "a / b * (1 + 1e-12), ").replace("no room for", "no space for"))
    assert set(results(replayed).values()) == {"passed"}
    assert set(replayed.differences) == {visible("ratio"), visible("shelf")}
    assert replayed.live == {visible("ratio"), visible("shelf"), visible("noise")}


def test_an_error_that_the_test_cannot_catch_needs_no_live_run(replay: Replay) -> None:
    replayed = replay(RIGHT.replace("return sum(numbers)", "raise NotImplementedError"))
    assert results(replayed)[held_out("empty")] == "failed"
    assert held_out("empty") not in replayed.live
    assert visible("total") not in replayed.live  # `raises` of another test does not help it


def test_state_that_lasts_costs_the_tests_that_it_reaches(replay: Replay) -> None:
    """Right alone and wrong among others: nobody can say which of the two is the answer."""
    replayed = replay(
        RIGHT.replace("def total(numbers):", "_calls = []\n\n\ndef total(numbers):\n    _calls.append(1)").replace(
            "return sum(numbers)", "return sum(numbers) if len(_calls) < 3 else -1"
        )
    )
    failed = {test for test, result in results(replayed).items() if result == "failed"}
    assert failed
    assert failed <= {visible("total"), held_out("empty")}


def test_what_is_said_at_the_first_use_costs_nothing(replay: Replay) -> None:
    """Another test is the first one in each order, and what is printed is looked at by none."""
    said = "_said = []\n\n\ndef _say():\n    _said or print('ready')\n    _said.append(1)\n\n\n"
    otherwise = RIGHT.replace("def total(numbers):", f"{said}def total(numbers):\n    _say()")
    otherwise = otherwise.replace("def words(text):", "def words(text):\n    _say()")
    assert set(results(replay(otherwise)).values()) == {"passed"}


def test_an_object_that_equals_everything_is_found_among_decoys(replay: Replay) -> None:
    replayed = replay(RIGHT.replace("return self.books == other\n", "return other != ['a']\n", 1))
    assert results(replayed)[visible("shelf")] == "failed"


@pytest.mark.slow
def test_a_hang_costs_its_test_and_not_the_others(replay: Replay) -> None:
    hanging = RIGHT.replace("def words(text):", "def words(text):\n    while True:\n        pass\n")
    replayed = replay(hanging)
    assert results(replayed)[visible("words")] == "timed_out"
    assert [test for test, result in results(replayed).items() if result != "passed"] == [visible("words")]


def test_a_hang_in_a_live_test_costs_no_other_live_test(replay: Replay) -> None:
    """All but one differ in a way that the test allows, so each is decided live."""
    otherwise = RIGHT.replace('{"ratio": a / b, "of": [a, b]}', '{"of": [a, b], "ratio": a / b + 1e-13}')
    otherwise = otherwise.replace("return sum(numbers)", "return float(sum(numbers))")
    hanging = otherwise.replace("return random.random()", "threading.Event().wait()")
    replayed = replay(f"import threading\n{hanging}")

    assert {visible("noise"), visible("ratio"), visible("total")} <= replayed.live
    lost = {test for test, result in results(replayed).items() if result != "passed"}
    assert lost == {visible("noise")}


_PLACE = """import sys


def _is_replayed():
    frame = sys._getframe()
    while frame and "replay_supervisor" not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None


"""


def test_an_answer_that_is_right_only_live_fails(replay: Replay) -> None:
    otherwise = RIGHT.replace("return sum(numbers)", "return -1 if _is_replayed() else sum(numbers)")
    replayed = replay(_PLACE + otherwise)
    failed = {test for test, result in results(replayed).items() if result == "failed"}
    assert failed == {visible("total"), held_out("empty")}


def test_an_answer_that_chance_orders_may_differ_live(replay: Replay) -> None:
    """The dict is compared by the test whatever its order."""
    otherwise = RIGHT.replace(
        '{"ratio": a / b, "of": [a, b]}',
        'dict([("of", [a, b]), ("ratio", a / b + 1e-13)][:: 1 if _is_replayed() else -1])',
    )
    assert set(results(replay(_PLACE + otherwise)).values()) == {"passed"}


def test_answers_by_place_in_many_tests_fail_in_all(replay: Replay) -> None:
    """Right for whoever is asked first in a process, and wrong among others."""
    asked = "_calls = []\n\n\ndef _is_first():\n    _calls.append(1)\n    return len(_calls) == 1\n\n\n"
    otherwise = RIGHT
    for line in (
        "return sum(numbers)",
        "return set(text.split())",
        "return [function(value) for value in values]",
        'return {"ratio": a / b, "of": [a, b]}',
    ):
        otherwise = otherwise.replace(line, f"{line} if _is_first() else None")
    failed = {test for test, result in results(replay(asked + otherwise)).items() if result == "failed"}
    assert len(failed) > 2
