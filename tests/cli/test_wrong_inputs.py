"""Wrong inputs over all verbs: one line on stderr, the right exit code, one JSON object, nothing left on disk."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gametape.cli.main import VERBS

from .command import GAMETAPE, gametape
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
    environment = {**os.environ, "GAMETAPE_HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
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
    assert not (tmp_path / "config").exists()


@pytest.mark.parametrize(
    "words",
    [
        "costs secret.json",
        "watch closed",
        "trajectory convert good.json --out sealed/new.json",
        "outbox list --home sealed",
        "outbox list --home sealed-desk",
        "heartbeat list --home sealed-desk",
        "desk status --home sealed-desk",
        "desk repair --home sealed-desk",
        "thread new --model scripted:turns.jsonl --home sealed/deeper",
        "solve task --model scripted:expert --out new --home sealed",
        "verify task --workspace empty --home sealed",
        "worlds make --out sealed/new --count 1",
    ],
)
def test_what_may_not_be_read_or_written_is_said(laid: Path, words: str) -> None:
    """As a user without the powers of root over files."""
    (laid / "secret.json").write_text((laid / "good.json").read_text())
    for name, mode in (("secret.json", 0), ("closed", 0), ("sealed", 0o555), ("sealed-desk/desk", 0o555)):
        if name != "secret.json":
            (laid / name).mkdir(exist_ok=True)
        (laid / name).chmod(mode)
    without_powers = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    if without_powers and not shutil.which("setpriv"):
        pytest.skip("root, without setpriv to put its powers down")
    command = [*without_powers, sys.executable, GAMETAPE, *words.split(), "--json"]
    try:
        done = subprocess.run(command, cwd=laid, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert json.loads(done.stdout)["exit_code"] == 2
        assert not (laid / "new").exists()
    finally:
        (laid / "secret.json").chmod(0o600)
        (laid / "secret.json").unlink()


def test_every_verb_is_given_something_wrong() -> None:
    assert set(VERBS) - {wrong.argv[0] for wrong in WRONG_INPUTS} == {"doctor"}, "which takes nothing"


def _tree(top: Path) -> dict[str, int]:
    return {str(path.relative_to(top)): path.lstat().st_size if path.is_file() else 0 for path in top.rglob("*")}
