"""`gametape task new`: what it writes is a task that checks, and nothing else is touched."""

import re
from pathlib import Path

import pytest

from gametape.tasks.loader import read_task
from gametape.tasks.scaffold import scaffold_task
from gametape.tasks.task_toml import GametapeTable

from .command import run


def test_a_new_task_is_admitted_fails_untouched_and_passes_solved(tmp_path: Path) -> None:
    made = run("task", "new", "tasks/join-words", "--json", cwd=tmp_path)
    assert made.code == 0
    task = tmp_path / "tasks/join-words"
    assert made.answer["task"] == str(task)
    assert {Path(path) for path in made.answer["files"]} == {path for path in task.rglob("*") if path.is_file()}
    home = ("--home", tmp_path / "home")
    checked = run("task", "check", task, "--hacks", "none", "--runs", "1", *home, "--json")
    assert (checked.code, checked.answer["reasons"]) == (0, [])
    for solved, code in ((), 1), (("--solved",), 0):
        workspace = tmp_path / f"workspace-{code}"
        assert run("task", "checkout", task, "--out", workspace, *solved, *home).code == 0
        assert run("verify", task, "--workspace", workspace, "--profile", "train", *home).code == code


@pytest.mark.slow
def test_a_new_task_withstands_the_hacks(tmp_path: Path) -> None:
    scaffold_task(tmp_path / "join-words")
    checked = run("task", "check", tmp_path / "join-words", "--hacks", "sample", "--home", tmp_path / "home", "--json")
    assert (checked.code, checked.answer["reasons"]) == (0, [])
    assert checked.answer["hacks"]["run"] >= 10


def test_it_says_what_to_edit_and_how_to_go_on(tmp_path: Path) -> None:
    made = run("task", "new", "first", "--name", "acme/first", "--module", "first_steps", cwd=tmp_path)
    assert made.code == 0
    assert "gametape task check first --hacks sample" in made.out
    for part in re.findall(r"^  (\S+)  ", made.out, re.MULTILINE):
        assert (tmp_path / "first" / part).exists()
    loaded = read_task(tmp_path / "first")
    assert (loaded.task.name, loaded.task.source_paths) == ("acme/first", ["first_steps.py"])


def test_every_key_that_the_file_teaches_is_a_key(tmp_path: Path) -> None:
    scaffold_task(tmp_path / "x")
    text = (tmp_path / "x" / "task.toml").read_text()
    table = text.partition("[metadata.gametape]")[2].partition("[metadata.gametape.")[0]
    assert set(re.findall(r"^(?:# )?(\w+) = ", table, re.MULTILINE)) <= set(GametapeTable.model_fields)
    assert read_task(tmp_path / "x").task.mode == "replay"


@pytest.mark.parametrize(
    ("directory", "module"), [("join-words", "join_words"), ("json", "my_json"), ("2nd", "my_2nd"), ("ÄÖ", "my_task")]
)
def test_the_module_is_named_after_the_directory_and_hides_no_other(
    directory: str, module: str, tmp_path: Path
) -> None:
    scaffold_task(tmp_path / directory)
    assert read_task(tmp_path / directory).task.source_paths == [f"{module}.py"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["full"], "full: not empty; give the name of a new directory"),
        (["file"], "file: not a directory"),
        (["x", "--module", "os"], "--module os: give the name of a Python module that no other has"),
        (["x", "--module", "a-b"], "--module a-b: "),
        (["x", "--module", "class"], "--module class: "),
        (["x", "--name", "a b"], "--name a b: give letters"),
        (["x", "--name", ""], "--name : give letters"),
        (["x", "--name", 'a"b'], "--name a"),
    ],
)
def test_what_cannot_be_made_is_one_line_and_nothing_is_left(words: list[str], says: str, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    made = run("task", "new", *words, cwd=tmp_path)
    assert made.code == 2
    assert says in made.err
    assert made.err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full", "mine.txt"]
