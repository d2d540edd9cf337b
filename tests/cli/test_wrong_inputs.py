"""Wrong inputs over all verbs: one line on stderr, the right exit code, one JSON object, nothing left on disk."""

import json
import os
from pathlib import Path

import pytest

from gametape.cli.main import VERBS

from .command import gametape
from .wrong_inputs import WRONG_INPUTS, Wrong, lay_wrong_inputs

PROGRESS = {"reading the source"}


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("wrong") / "here"
    top.mkdir()
    lay_wrong_inputs(top)
    return top


@pytest.mark.parametrize("wrong", WRONG_INPUTS, ids=lambda wrong: wrong.name)
def test_it_is_refused_in_one_line(laid: Path, tmp_path: Path, wrong: Wrong) -> None:
    before = _tree(laid)
    words = wrong.argv if "--json" in wrong.argv else [*wrong.argv, "--json"]
    environment = {**os.environ, "GAMETAPE_HOME": str(tmp_path / "home")}
    done = gametape(*words, cwd=laid, env=environment)
    assert done.returncode == wrong.code, (done.stdout[-500:], done.stderr[-2000:])
    lines = [line for line in done.stderr.splitlines() if line not in PROGRESS]
    assert len(lines) == 1, done.stderr[-2000:]
    assert lines[0].startswith("gametape: ")
    assert lines[0].isprintable()
    assert len(lines[0]) < 12_000
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer == {"error": lines[0].removeprefix("gametape: "), "exit_code": wrong.code}
    assert _tree(laid) == before
    assert [path.name for path in tmp_path.glob("home/*") if path.name != "desk"] == []


def test_every_verb_is_given_something_wrong() -> None:
    assert set(VERBS) - {wrong.argv[0] for wrong in WRONG_INPUTS} == {"doctor"}, "which takes nothing"


def _tree(top: Path) -> dict[str, int]:
    return {str(path.relative_to(top)): path.lstat().st_size if path.is_file() else 0 for path in top.rglob("*")}
