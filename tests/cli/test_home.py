"""`$GAMETAPE_HOME` where no home can be: one line, exit code 2, for every verb, before any work is done."""

import os
from pathlib import Path

import pytest
import typer

from gametape.cli.main import VERBS, app
from gametape.core.errors import BadInput
from gametape.record.home import home_directory

from .command import gametape

TASK = str(Path(__file__).parents[2] / "examples/tasks/double")
WORDS = {
    "coach": "rollout.json --task worlds:moderate --model scripted:turns.jsonl",
    "demo": "--quick --out made",
    "eval": f"{TASK} --model scripted:expert",
    "goal run": "--workspace workspace --success true --model scripted:turns.jsonl",
    **dict.fromkeys(("goal show", "goal resume", "goal cancel"), "goal-1"),
    "heartbeat add": "beat.md",
    **{f"heartbeat {verb}": "beat" for verb in ("run", "log", "pause", "resume", "remove")},
    "init": "--yes --no-test --model scripted:turns.jsonl",
    "mine": f"{TASK} --out made",
    "models test": "scripted:turns.jsonl",
    **dict.fromkeys(("outbox approve", "outbox reject"), "draft-1"),
    "report": "rollout.json --out made.html",
    "solve": f"{TASK} --model scripted:expert --out made",
    "task checkout": f"{TASK} --out made",
    "task check": TASK,
    "thread new": "--model scripted:turns.jsonl",
    "thread say": "thread-1 hello",
    **dict.fromkeys(("thread show", "thread fork", "thread archive"), "thread-1"),
    "trajectory show": "rollout.json",
    "train": "config.toml --out made",
    "vault revert": "note",
    "vault search": "word",
    "vault sync": "--remote elsewhere",
    "verify": f"{TASK} --workspace workspace",
}
"""What a verb needs beside a home."""


def _verbs_with_a_home() -> list[str]:
    found = []
    for verb in VERBS:
        command = typer.main.get_command(app).get_command(None, verb)  # type: ignore[attr-defined]
        commands = {verb: command} | {f"{verb} {name}": sub for name, sub in getattr(command, "commands", {}).items()}
        found += [name for name, sub in commands.items() if any("--home" in param.opts for param in sub.params)]
    return found


@pytest.mark.parametrize("verb", _verbs_with_a_home())
def test_every_verb_refuses_a_file_as_its_home(tmp_path: Path, verb: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "workspace").mkdir()
    (tmp_path / "turns.jsonl").write_text('{"text": "Hello."}\n')
    (tmp_path / "beat.md").write_text("---\nmodel: scripted:turns.jsonl\ncadence: {every: 1h}\n---\nIs all well?\n")
    step = '{"step_id": 1, "source": "agent", "message": "x"}'
    head = '{"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": ['
    (tmp_path / "rollout.json").write_text(f"{head}{step}]}}")
    (tmp_path / "config.toml").write_text((Path(TASK).parents[2] / "configs/rlvr-moderate.toml").read_text())
    before = sorted(tmp_path.rglob("*"))
    environment = {**os.environ, "GAMETAPE_HOME": "file", "XDG_CONFIG_HOME": str(tmp_path / "user")}
    done = gametape(*verb.split(), *WORDS.get(verb, "").split(), cwd=tmp_path, env=environment)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert "a file, where the home" in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("home", "says"),
    [
        ("file", "a file"),
        ("file/deeper", "a file"),
        ("dangling", "leads nowhere"),
        ("dangling/deeper", "leads nowhere"),
        ("loop", "leads nowhere"),
        ("/dev/null", "a file"),
        ("/proc/gametape", "cannot be written"),
        ("~nobody-has-this-name/home", "home"),
        ("x" * 300, "File name too long"),
        ("a\0b", "NUL"),
    ],
)
def test_an_impossible_place_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str, says: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(BadInput, match=says):
        home_directory(Path(home))


def test_a_home_is_made_absolute_and_an_empty_name_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GAMETAPE_HOME", "relative/home")
    assert home_directory() == tmp_path / "relative/home"
    monkeypatch.setenv("GAMETAPE_HOME", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert home_directory() == tmp_path / "data/gametape"
    assert not (tmp_path / "relative").exists()
