from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gametape.core.verdict import Check
from gametape.sandbox.result import PolicyViolation, ViolationAction
from gametape.verify.layers import runtime
from gametape.verify.verifier_run import RunEvent, VerifierRun
from tests.verify.layers.toy_task import run, scoring_context, toy_task

TASK = toy_task({"src/m.py": ""}, {"src/m.py": "x = 1\n"})


def score(*runs: VerifierRun) -> Check:
    check = runtime.score(scoring_context(TASK, {"src/m.py": "x = 2\n"}, runs=runs))
    assert check is not None
    return check


def violation(syscall: str, action: ViolationAction = "denied") -> PolicyViolation:
    return PolicyViolation(syscall=syscall, args=(), pid=1, command="python", time=0.0, action=action)


def test_passing_runs_are_clean() -> None:
    assert score(run(a="passed", b="passed")).score == 1.0


def test_a_wrong_answer_is_no_error() -> None:
    message = "failed: def test_a():\n>   assert f() == 1\nE   assert 2 == 1\n\ntests/t.py:3: AssertionError"
    assert score(run(a=message, b="failed: E   AssertionError: no\ntests/t.py:9: AssertionError")).score == 1.0
    assert score(run(a="failed: E   Failed: DID NOT RAISE <class 'ValueError'>", b="passed")).score == 1.0
    assert score(run(a="skipped", b="passed")).score == 1.0


@pytest.mark.parametrize(
    "outcome",
    [
        "failed: E   NameError: name 'x' is not defined\n\nsrc/m.py:1: NameError",
        "failed: ImportError while importing test module '/workspace/tests/test_m.py'.",
        'failed: E     File "m.py", line 1\nE   SyntaxError: invalid syntax',
        "failed: E   mypackage.errors.ParseError: x",
        "failed: E   SystemExit: 0",
        "timed_out",
        "missing",
    ],
)
def test_errors_are_counted_by_test(outcome: str) -> None:
    check = score(run(a=outcome, b="passed"))
    assert check.score == 0.5
    assert "test_a" in check.detail


def test_a_test_that_passed_once_has_no_error() -> None:
    assert score(run(a="passed"), run(b="passed", a="failed: E   ValueError: x")).score == 1.0


def test_denied_calls_kills_and_early_leavers_halve_the_rest() -> None:
    whole = run(a="passed", b="passed")
    assert score(replace(whole, violations=(violation("socket"), violation("socket")))).score == 0.5
    assert score(replace(whole, violations=(violation("socket"), violation("ptrace")))).score == 0.25
    assert score(replace(whole, violations=(violation("openat", "logged"),))).score == 1.0
    assert score(replace(whole, killed_by="memory")).score == 0.5
    check = score(replace(whole, events=(RunEvent("left early", "exit code 0"),)))
    assert check.score == 0.5
    assert "exit code 0" in check.detail


def test_without_runs_there_is_nothing_to_say() -> None:
    assert runtime.score(scoring_context(TASK, {"src/m.py": "x = 2\n"})) is None


def test_hostile_messages_are_read_in_time(tmp_path: Path) -> None:
    hostile: list[Any] = ["a." * 500_000, "a" * 1_000_000, "E " * 500_000, "\n" * 1_000_000]
    for message in hostile:
        assert score(run(a="failed: " + message, b="passed")).score == 1.0
