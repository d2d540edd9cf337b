"""docs/quickstart.md, replayed: its commands, in a fresh clone, on a repository outside of it.

A script takes the place of the person's model: `init` is given it with `--yes`, where a person would answer.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "quickstart"


def commands() -> list[str]:
    page = (ROOT / "docs" / "quickstart.md").read_text()
    return [
        line
        for block in re.findall(r"```\n(.*?)```", page, re.DOTALL)
        for line in re.findall(r"^\$ (.*)$", block, re.M)
    ]


def test_five_commands_lead_to_a_goal_that_is_reached(tmp_path: Path) -> None:
    person = tmp_path / "person"
    shutil.copytree(EXAMPLE / "shop", person / "yours")
    before = {path: path.read_bytes() for path in (person / "yours").rglob("*") if path.is_file()}
    origin = tmp_path / "origin"
    subprocess.run(["git", "clone", "--quiet", ROOT, origin], check=True)
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environment = kept | {"HOME": str(person), "NO_COLOR": "1"}

    def type_in(command: str, directory: Path) -> subprocess.CompletedProcess[str]:
        typed = command.replace("REPOSITORY", str(origin))
        if typed.endswith("gametape init"):
            typed += f" --yes --model scripted:{EXAMPLE / 'turns.jsonl'}"
        done = subprocess.run(
            ["sh", "-ec", typed], cwd=directory, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{typed}\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}"
        return done

    clone, install, init, goal, report, without_a_model = commands()
    type_in(clone, person)
    inside = person / "gametape"
    assert "setup: ready in" in type_in(install, inside).stderr
    assert "written:" in type_in(init, inside).stdout
    assert type_in(goal, inside).stdout.startswith("reached")
    type_in(report, inside)
    page = (inside / "report.html").read_text()
    assert "Make this command succeed: pytest -q" in page
    assert "attempt 1 did not reach the goal" in page
    assert {path: path.read_bytes() for path in (person / "yours").rglob("*") if path.is_file()} == before
    assert type_in(without_a_model, inside).stdout.startswith("reached")
