"""`gametape mine` over what cannot be mined: one line about why, and nothing left behind."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gametape.cli.mine import app
from gametape.tasks.mining import baseline

from ..tasks.mining.made import SHELF, around
from .command import Ran
from .mining import laid, mine


def bad(source: Path, *words: str | Path, home: Path, tmp_path: Path) -> Ran:
    """It leaves nothing behind, and says one line about what is wrong."""
    ran = mine(source, "--out", tmp_path / "new", *words, home=home)
    assert not (tmp_path / "new").exists()
    assert len([line for line in ran.err.splitlines() if line.startswith("gametape: ")]) == 1
    assert ran.err.splitlines()[-1].startswith("gametape: ")
    return ran


def refused(files: Mapping[str, str], home: Path, tmp_path: Path, *words: str) -> tuple[str, str]:
    ran = bad(laid(tmp_path / "shelf", files), *words, home=home, tmp_path=tmp_path)
    assert ran.code == 1
    answer = ran.answer
    assert (answer["candidates"], answer["valid"], answer["tasks"]) == (0, 0, [])
    assert f"gametape: refused ({answer['refused']['reason']}): " in ran.err
    return answer["refused"]["reason"], answer["refused"]["message"]


NO_TESTS = {name: text for name, text in SHELF.items() if not name.startswith("tests/")}
PLUGGY = {name.replace("shelf/", "pluggy/"): text.replace("shelf", "pluggy") for name, text in SHELF.items()}


@pytest.mark.parametrize(
    ("files", "reason", "message"),
    [
        ({}, "empty", "there is no Python in it (0 files)"),
        ({"notes.txt": "nothing"}, "empty", "there is no Python in it (1 files)"),
        (NO_TESTS, "no_tests", "no tests were found"),
        ({**SHELF, "shelf/sums.py": "def total(:\n"}, "syntax_error", "shelf/sums.py: line 1"),
        (PLUGGY, "self_hosting", "the test runner needs pluggy itself"),
    ],
)
def test_a_code_base_that_cannot_be_mined(
    files: dict[str, str], reason: str, message: str, home: Path, tmp_path: Path
) -> None:
    found, said = refused(files, home, tmp_path)
    assert found == reason
    assert message in said


HELP = "import os, socket, pathlib\n"
OUTSIDE = "def test_{0}():\n    pathlib.Path('/etc/{0}').write_text('x')\n"
NETWORK = "def test_{0}():\n    socket.create_connection(('192.0.2.1', 80), timeout=1)\n"
DELETES = "def test_{0}():\n    os.remove('pyproject.toml')\n    open('pyproject.toml', 'w').close()\n"
ORDER = "def test_{0}():\n    assert len(SEEN) == {0}\n    SEEN.append(1)\n"


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        (OUTSIDE, "writes_outside"),
        (NETWORK, "needs_network"),
        (DELETES, "changes_files"),
        (ORDER, "order"),
    ],
)
def test_a_suite_that_cannot_be_relied_on(test: str, reason: str, home: Path, tmp_path: Path) -> None:
    text = HELP + "SEEN = []\n" + "".join(test.format(number) for number in range(8))
    found, said = refused(around(text), home, tmp_path, "--jobs", "2")
    assert found == reason
    assert "tests cannot be relied on" in said
    assert not Path("/etc/0").exists()


def test_a_suite_that_does_not_end(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline, "FIRST_RUN_SECONDS", 1.0)
    source = laid(tmp_path / "shelf", around("def test_it():\n    while True:\n        pass\n"))
    ran = CliRunner().invoke(app, [str(source), "--out", str(tmp_path / "out"), "--home", str(home), "--json"])
    assert ran.exit_code == 1
    assert json.loads(ran.stdout.splitlines()[-1])["refused"]["reason"] == "hangs"
    assert not (tmp_path / "out").exists()


def test_a_code_base_without_features(home: Path, tmp_path: Path) -> None:
    files = around("from shelf import twice\n\ndef test_a():\n    twice(1)\n\ndef test_b():\n    twice(2)\n")
    assert refused(files, home, tmp_path)[0] == "no_candidates"


def no_archive(place: Path) -> list[str | Path]:
    (place / "shelf.tar.gz").write_text("no archive")
    return [place / "shelf.tar.gz"]


def nothing_there(place: Path) -> list[str | Path]:
    return [place / "nowhere"]


def no_tests_there(place: Path) -> list[str | Path]:
    return [laid(place / "shelf", SHELF), "--tests", "checks"]


def limit_of_nothing(place: Path) -> list[str | Path]:
    return [laid(place / "shelf", SHELF), "--limit", "0"]


def no_python(place: Path) -> list[str | Path]:
    return [laid(place / "shelf", SHELF), "--python", "/bin/ls"]


def python_nowhere(place: Path) -> list[str | Path]:
    return [laid(place / "shelf", SHELF), "--python", place / "python"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (no_archive, "shelf.tar.gz"),
        (nothing_there, "nowhere"),
        (no_tests_there, "checks: no such file or directory in the code base"),
        (limit_of_nothing, "--limit"),
        (no_python, "/bin/ls"),
        (python_nowhere, "python"),
    ],
)
def test_bad_input_is_one_line(
    words: Callable[[Path], list[str | Path]], expected: str, home: Path, tmp_path: Path
) -> None:
    ran = bad(*words(tmp_path), home=home, tmp_path=tmp_path)  # type: ignore[arg-type]
    assert ran.code == 2
    assert ran.answer["exit_code"] == 2
    assert len(ran.err.splitlines()[-1]) < 300
    assert expected in ran.err.splitlines()[-1]


def test_a_directory_with_something_in_it_is_left_alone(home: Path, tmp_path: Path) -> None:
    source = laid(tmp_path / "shelf", SHELF)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    ran = mine(source, "--out", tmp_path / "out", home=home)
    assert ran.code == 2
    assert "out: not empty, or give the name of a new directory" in ran.err
    assert os.listdir(tmp_path / "out") == ["mine.txt"]
