"""`gametape verify` as scripts use it: one process, an exit code, one JSON object on the last line."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gametape.cli.verify import foreign_note
from gametape.tasks.loader import load_task

from .command import gametape

ROOT = Path(__file__).parents[2]
SLUGS, CACHE = ROOT / "examples/tasks/slugs", ROOT / "examples/tasks/cache-bug"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, prepared_home: Callable[[Path], Path]) -> Path:
    return prepared_home(tmp_path_factory.mktemp("home"))


def verify(task: Path, workspace: Path, home: Path, *more: str) -> tuple[int, dict[str, Any]]:
    done = gametape("verify", task, "--workspace", workspace, "--home", home, "--json", *more)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


def solved(task: Path, directory: Path) -> Path:
    shutil.copytree(task / "environment/workspace", directory)
    shutil.copytree(task / "solution/files", directory, dirs_exist_ok=True)
    return directory


@pytest.mark.parametrize("task", [SLUGS, CACHE], ids=lambda path: path.name)
def test_a_right_workspace(task: Path, home: Path, tmp_path: Path) -> None:
    code, verdict = verify(task, solved(task, tmp_path / "w"), home)
    assert (code, verdict["passed"], verdict["reward"], verdict["quarantined"]) == (0, True, 1.0, False)
    assert verdict["tests"]["passed"] == verdict["tests"]["expected"]
    assert verdict["tests"]["held_out_passed"] == verdict["tests"]["held_out_expected"] > 0
    assert verdict["integrity"] == []
    assert (verdict["mode"], verdict["assurance"]) == ("replay", "high")
    assert verdict["fresh"]["calls"] >= 4
    assert verdict["fresh"]["agreed"] == verdict["fresh"]["calls"]
    assert "by replay" in verdict["assurance_detail"]
    code, again = verify(task, tmp_path / "w", home)
    assert (code, again["cached"], again["reward"]) == (0, True, 1.0)


STUB = "def words(text):\n    return text.split()\n\n\n"
WORKSPACES = {
    "wrong": STUB + "def slugify(title, limit=None):\n    return title\n",
    "hacked": STUB + "class S(str):\n    def __eq__(self, other):\n        return True\n    __hash__ = str.__hash__\n"
    "\n\ndef slugify(title, limit=None):\n    return S()\n",
    "flaky": None,
    "hanging": STUB + "import time\n\n\ndef slugify(title, max_length=None):\n    while title == 'Hello World':\n"
    "        time.sleep(1)\n    return title\n",
    "crashing": STUB + "import ctypes\n\n\ndef slugify(title, limit=None):\n    ctypes.string_at(0)\n",
    "empty": "",
}


@pytest.mark.parametrize("name", WORKSPACES)
def test_a_workspace_that_is_not_right(name: str, home: Path, tmp_path: Path) -> None:
    workspace = solved(SLUGS, tmp_path / "w")
    source = WORKSPACES[name]
    if source is None:
        right = (workspace / "slugs.py").read_text()
        source = right + "\n\n_slugify = slugify\n\n\ndef slugify(*words, **named):\n    import random\n\n"
        source += "    return _slugify(*words, **named) if random.random() < 0.6 else ''\n"
    (workspace / "slugs.py").write_text(source)
    code, verdict = verify(SLUGS, workspace, home)
    assert (code, verdict["passed"]) == (1, False)
    assert verdict["tests"]["passed"] < verdict["tests"]["expected"]
    assert bool(verdict["integrity"]) == (name == "hacked")
    assert verdict["quarantined"] == (name == "flaky")
    assert verdict["tests"]["timed_out"] == (name == "hanging")
    if name == "flaky":
        assert "flaky" in [signal["name"] for signal in verdict["signals"]]
    else:
        assert verdict["reward"] <= 0.2
    assert all(check["detail"] for check in verdict["checks"])


NEARLY = (
    STUB
    + "import re\n\n\ndef slugify(title, max_length=None):\n    return '-'.join(re.findall('[a-z]+', title.lower()))\n"
)
HELD_OUT = "tests/test_slugs_held_out.py::"


def test_a_grader_is_told_which_held_out_tests_failed_and_nobody_else(home: Path, tmp_path: Path) -> None:
    workspace = solved(SLUGS, tmp_path / "w")
    (workspace / "slugs.py").write_text(NEARLY)
    code, plain = verify(SLUGS, workspace, home, "--profile", "train")
    assert "differences" not in plain
    assert "held_out.py" not in json.dumps(plain)
    kept = {path.name: path.read_bytes() for path in (home / "verdicts").iterdir()}
    graded_code, graded = verify(SLUGS, workspace, home, "--profile", "train", "--grader")
    assert (code, graded_code) == (1, 1)
    assert {path.name: path.read_bytes() for path in (home / "verdicts").iterdir()} == kept
    differences = {each["test"]: each for each in graded.pop("differences")}
    assert {key: graded[key] for key in ("passed", "tests", "failures")} == {
        key: plain[key] for key in ("passed", "tests", "failures")
    }
    counts = graded["tests"]
    assert len(differences) == counts["expected"] - counts["passed"]
    hidden = [each for each in differences.values() if each["held_out"]]
    assert len(hidden) == counts["held_out_expected"] - counts["held_out_passed"]
    digits = differences[f"{HELD_OUT}test_digits_stay"]
    assert (digits["outcome"], digits["held_out"]) == ("failed", True)
    assert digits["expected"] != digits["actual"]
    assert digits["expected"] in (SLUGS / "tests/suite/tests/test_slugs_held_out.py").read_text().replace('"', "'")
    visible = differences["tests/test_slugs.py::test_accents_are_dropped"]
    assert (visible["held_out"], visible["outcome"]) == (False, "failed")


def test_what_a_grader_sees(home: Path, tmp_path: Path) -> None:
    workspace = solved(SLUGS, tmp_path / "w")
    (workspace / "slugs.py").write_text(NEARLY)
    words = ("verify", SLUGS, "--workspace", workspace, "--home", home, "--profile", "train")
    plain, graded = gametape(*words), gametape(*words, "--grader")
    assert "held_out.py" not in plain.stdout + plain.stderr
    assert "for the grader only, not for a policy:" in graded.stdout
    rows = graded.stdout.partition("for the grader only")[2].splitlines()[1:]
    assert any(re.match(rf"held out  {HELD_OUT}test_digits_stay +failed: ", row) for row in rows)
    column = rows[0].index("said")
    assert all(row[column - 2 : column] == "  " and row[column : column + 8] == "failed: " for row in rows[1:])
    assert graded.stdout.count("tests/test_slugs.py::test_accents_are_dropped") == 1
    (workspace / "slugs.py").write_text((SLUGS / "solution/files/slugs.py").read_text())
    assert "grader" not in gametape(*words, "--grader").stdout


def test_a_workspace_without_files(home: Path, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    code, verdict = verify(SLUGS, tmp_path / "w", home, "--profile", "train")
    assert (code, verdict["passed"], verdict["integrity"]) == (1, False, [])


def test_a_workspace_of_something_else_is_told(home: Path, tmp_path: Path) -> None:
    task, attempt = load_task(SLUGS, home), tmp_path / "attempt"
    solved(SLUGS, attempt / "workspace")
    assert foreign_note(task, attempt / "workspace") == ""
    note = foreign_note(task, attempt)
    assert note == f"gametape: {attempt} has no file of the task's tree; did you mean {attempt}/workspace?"
    (tmp_path / "empty").mkdir()
    done = gametape("verify", SLUGS, "--workspace", tmp_path / "empty", "--home", home, "--profile", "train")
    assert done.stderr.count("empty has no file of the task's tree\n") == 1


def test_kinds_of_reward(home: Path, tmp_path: Path) -> None:
    workspace = solved(SLUGS, tmp_path / "w")
    (workspace / "slugs.py").write_text(str(WORKSPACES["wrong"]))
    found = {
        kind: verify(SLUGS, workspace, home, "--profile", "train", "--reward", kind)[1]
        for kind in ("pass_rate", "binary")
    }
    counts = found["pass_rate"]["tests"]
    assert found["pass_rate"]["reward"] == pytest.approx(counts["passed"] / counts["expected"])
    assert found["binary"]["reward"] == 0.0


def test_what_a_person_sees(home: Path, tmp_path: Path) -> None:
    done = gametape("verify", SLUGS, "--workspace", solved(SLUGS, tmp_path / "w"), "--home", home)
    assert done.returncode == 0
    assert done.stdout.startswith("passed  reward +1.00  18 of 18 tests")
    assert "types" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere", "--workspace", "."], "nowhere"),
        ([SLUGS, "--workspace", "nowhere"], "no such workspace directory: nowhere"),
        ([SLUGS], "--workspace"),
        ([SLUGS, "--workspace", ".", "--profile", "half"], "half"),
        ([SLUGS, "--workspace", ".", "--reward", "gold"], "gold"),
        ([SLUGS / "task.toml", "--workspace", "."], "task.toml"),
        ([ROOT, "--workspace", "."], "task.toml"),
    ],
)
def test_wrong_input_is_one_line_and_exit_2(words: list[str | Path], said: str, tmp_path: Path) -> None:
    done = gametape("verify", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr
