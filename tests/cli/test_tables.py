"""The tables of the verbs at 80 columns, at 60 and in a pipe: no title is cut, no number is split."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .command import gametape

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with threads and a heartbeat of long names, and a directory of attempts beside it."""
    top = tmp_path_factory.mktemp("tables")
    (top / "turns.jsonl").write_text('{"text": "Hello."}\n')
    title = "the test that fails on Mondays, on Tuesdays and whenever the moon is nearly full"
    made = gametape("thread", "new", "--model", "scripted:turns.jsonl", "--title", title, "--home", "home", cwd=top)
    assert made.returncode == 0, made.stderr
    beat = "---\nmodel: scripted:turns.jsonl\ncadence: {every: 1h}\n---\nIs all well?\n"
    (top / "a-heartbeat-with-a-long-name.md").write_text(beat)
    added = gametape("heartbeat", "add", "a-heartbeat-with-a-long-name.md", "--home", "home", cwd=top)
    assert added.returncode == 0, added.stderr
    for number in range(30):
        (top / "attempts").mkdir(exist_ok=True)
        (top / f"attempts/{number}.json").write_text(json.dumps(_attempt(number)))
    return top


def _attempt(number: int) -> dict[str, Any]:
    calls = [{"tool_call_id": "c", "function_name": "a_tool_with_a_long_name", "arguments": {}}]
    metrics = {"cost_usd": 1234.5678, "prompt_tokens": 12_345_678, "completion_tokens": 9}
    return {
        "schema_version": "ATIF-v1.7",
        "trajectory_id": f"t{number}",
        "agent": {"name": "a", "version": "1", "model_name": "somebody/a-model-with-a-long-name-instruct"},
        "steps": [{"step_id": 1, "source": "agent", "message": "x", "tool_calls": calls, "metrics": metrics}],
        "extra": {
            "task": f"organisation/a-task-with-a-long-name-{number % 2}",
            "outcome": "passed" if number % 3 else "failed",
            "confidence": {"before": 0.5, "after": 0.9 if number % 3 else 0.2},
        },
    }


TABLES = {
    "costs": ("costs attempts", ["attempts", "passed", "dollars", "success", "failures", "tokens", "CPU"]),
    "calibration": ("calibration attempts", ["n", "Brier", "skill", "AUROC", "ECE", "perfect"]),
    "eval": (
        "eval worlds:moderate --model scripted:noisy --limit 2 -n 2 --home home",
        ["success", "pass@1", "derailed", "failures", "recovered"],
    ),
    "models": ("models --home home", ["what", "here", "trainable", "scripted:expert"]),
    "thread list": ("thread list --home home", ["title", "state", "tokens", "spent", "Mondays,"]),
    "heartbeat list": ("heartbeat list --home home", ["next", "last", "today", "a-heartbeat-with-a-long-name"]),
    "doctor": ("doctor", ["works", "has", "missing", "bubblewrap"]),
    "verify": (f"verify {ROOT}/examples/tasks/double --workspace {{solved}} --home home", ["score", "evidence"]),
}


@pytest.mark.parametrize("columns", ["80", "60", "piped"])
@pytest.mark.parametrize("table", TABLES)
def test_a_table_can_be_read(home: Path, table: str, columns: str) -> None:
    command, titles = TABLES[table]
    terminal = {} if columns == "piped" else {"TTY_COMPATIBLE": "1", "TTY_INTERACTIVE": "0", "COLUMNS": columns}
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "xterm", **terminal}
    words = command.replace("{solved}", str(_solved(home))).split()
    done = gametape(*words, cwd=home, env=environment)
    assert done.returncode in (0, 1), done.stderr
    shown = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    assert "…" not in shown
    for title in titles:
        assert title in shown.split(), shown
    if table == "costs":
        assert "37037.0340" in shown
        assert "370370610" in shown
    if table in ("costs", "calibration", "thread list"):
        widest = max(map(len, shown.splitlines()))
        assert widest > 80 if columns == "piped" else widest <= int(columns)


def _solved(home: Path) -> Path:
    out = home / "solved"
    if not out.exists():
        task = ROOT / "examples/tasks/double"
        done = gametape("task", "checkout", task, "--out", out, "--solved", "--home", home / "home")
        assert isinstance(done, subprocess.CompletedProcess)
        assert done.returncode == 0, done.stderr
    return out
