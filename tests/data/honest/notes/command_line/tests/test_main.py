import os
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "src"


def run(*words):
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    return subprocess.run(
        [sys.executable, "-m", "notes", *map(str, words)], capture_output=True, text=True, env=environment, check=False
    )


def test_add_and_find(tmp_path):
    assert run(tmp_path / "n.jsonl", "add", "Buy", "milk").stdout == "1\n"
    assert run(tmp_path / "n.jsonl", "find", "milk").stdout == "   1  Buy milk\n"
