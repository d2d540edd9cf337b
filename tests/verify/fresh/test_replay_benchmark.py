"""The benchmark of replay and fresh inputs runs from its command line, on a task that is there."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANG

ROOT = Path(__file__).parents[3]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "replay.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)


def test_it_says_what_it_does() -> None:
    done = run("--help")

    assert done.returncode == 0
    assert "--mutants" in done.stdout


@pytest.mark.slow
def test_it_measures_a_task_and_does_not_measure_it_again(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "tasks" / "durations", tmp_path / "tasks" / "durations" / "durations")
    options = ["--out", str(tmp_path), "--tasks", str(tmp_path / "tasks"), "--mutants", "4", "durations==1.0"]

    first = run(*options)
    row = json.loads((tmp_path / "measured" / "durations" / "durations.json").read_text())
    again = run(*options)

    assert first.returncode == again.returncode == 0, first.stderr
    assert row["mode"] == "replay"
    assert row["replayed"] == row["tests"]
    assert row["fresh_calls"] > 0
    assert sum(function["mutants"] for function in row["functions"]) >= 4
    assert "1 of 1 tasks by replay" in again.stdout
    assert first.stdout.count("gametape/durations") == 1
    assert "gametape/durations" not in again.stdout
