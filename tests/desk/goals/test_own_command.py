"""The user's own command has the last word: what it refuses is never called reached."""

from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.desk.goals.baseline import measure_baseline
from gametape.desk.goals.success_command import own_command, read_command
from gametape.record.source_tree import SourceTree
from gametape.verify.runner import ZygotePool
from tests.desk.goals.goal_attempts import MENDED, PYTEST, Attempt, judge_attempt


def test_settings_that_pytest_cannot_read_are_refused_before_a_token_is_spent() -> None:
    files = {**PYTEST, "pyproject.toml": "[project]\nname = 'shop'\n[[[\n"}
    start = SourceTree({path: text.encode() for path, text in files.items()})
    with ZygotePool() as zygotes, pytest.raises(BadInput, match=r"pytest refuses the success command: pyproject\.toml"):
        measure_baseline(start, "pytest -q tests", None, False, zygotes)


def test_a_command_that_fails_over_the_finished_tree_does_not_reach_the_goal(tmp_path: Path) -> None:
    failing = "def test_of_its_own():\n    assert False, 'left red'\n"
    attempt = Attempt("", "pytest -q tests", PYTEST, {"shop.py": MENDED, "tests/test_more.py": failing})
    judged, _ = judge_attempt(attempt, tmp_path)
    assert not judged.reached
    assert judged.tampering == ()
    assert "The command itself ends with exit code 1" in judged.feedback
    assert "left red" in judged.feedback


def test_the_own_command_keeps_every_word() -> None:
    run = read_command("cd app && PYTHONWARNINGS=error pytest -x -W error tests").pytest_runs[0]
    command = own_command(run, ("app", "."))
    assert command.directory == "app"
    assert command.text.startswith("env PYTHONPATH=")
    assert command.text.endswith("PYTHONWARNINGS=error python -B -m pytest -x -W error tests")
