"""The week in the docs, replayed: every command ends as it is told to, and the page says what they print."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def plain(page: str) -> list[str]:
    """Without what is different each time: ids, days and numbers, and the width they take."""
    without_ids = re.sub(r"\b[0-9a-f]{6,40}\b", "ID", page)
    without_days = re.sub(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d\d [A-Z][a-z]{2} ", "", without_ids)
    without_numbers = re.sub(r"\d+(?:[.:]\d+)*[smhd]?", "N", without_days)
    return [" ".join(line.split()) for line in without_numbers.splitlines()]


@pytest.mark.slow
def test_the_week_in_the_docs_is_what_the_commands_print(tmp_path: Path) -> None:
    page = tmp_path / "a-week.md"
    command = [sys.executable, ROOT / "scripts/week.py", "--out", page]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    assert plain(page.read_text()) == plain((ROOT / "docs/a-week.md").read_text())
