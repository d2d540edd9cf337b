"""A workspace, a vault and a task with directories nested 1,200 deep: every verb that looks at them goes on."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gametape.record.directory_walk import make_directories
from gametape.sandbox.snapshots.cleanup import remove_tree

from .command import run

TASK = Path(__file__).parents[2] / "examples/tasks/double"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("GAMETAPE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "turns.jsonl").write_text('{"text": "Hello."}\n')
    assert run("vault", "init").code == 0
    shutil.copytree(TASK, tmp_path / "task")
    for top in ("workspace", "home/vault/agent", "task/environment/workspace"):
        make_directories(tmp_path / top / "/".join(["d"] * 1_200))
        (tmp_path / top / "note.md").write_text("deep\n")
    yield tmp_path
    for entry in tmp_path.iterdir():
        if entry.is_dir():
            remove_tree(entry)


def test_verbs_over_them_end_as_they_do_without(place: Path) -> None:
    (place / "beat.md").write_text(
        "---\nmodel: scripted:turns.jsonl\nworkspace: workspace\nevent: {files: ['*.md']}\n---\nx\n"
    )
    assert run("vault", "show").code == 0
    assert run("vault", "search", "deep").code == 0
    assert run("heartbeat", "add", "beat.md").code == 0
    made = run("thread", "new", "--model", "scripted:turns.jsonl", "--workspace", "workspace", "--json")
    assert made.code == 0, made.err
    assert run("thread", "say", made.answer["thread"], "Hello?").out.strip() == "Hello."
    assert run("task", "checkout", "task", "--out", "out").code == 0
