import sys
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree, read_tree
from gametape.tasks.checkout import checkout
from gametape.tasks.loader import load_task

from .made import START, SUITE, TASKS, subject


def entries(directory: Path) -> set[str]:
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*")}


@pytest.mark.parametrize("task", TASKS, ids=lambda path: path.name)
def test_a_checkout_is_exactly_the_starting_tree(task: Path, tmp_path: Path) -> None:
    loaded = load_task(task)
    checkout(loaded, tmp_path / "out", solved=False)
    workspace = task / "environment/workspace"
    files = {path for path in entries(workspace) if "__pycache__" not in path and ".pytest_cache" not in path}
    assert entries(tmp_path / "out") == files
    assert read_tree(tmp_path / "out") == loaded.start
    everything = b"".join(read_tree(tmp_path / "out").files.values()).decode()
    for test in loaded.task.tests.held_out:
        name = test.partition("[")[0].split("::")[-1]
        shared = any(visible.partition("[")[0].endswith(f"::{name}") for visible in loaded.task.tests.visible)
        assert shared or f"def {name}(" not in everything


def test_a_solved_checkout_has_the_reference(tmp_path: Path) -> None:
    checkout(subject(), tmp_path / "out", solved=True)
    assert read_tree(tmp_path / "out") == subject().reference
    assert not (tmp_path / "out/old.py").exists()


def test_what_an_agent_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = checkout(subject(), Path("out"), solved=False)
    assert done.workspace == tmp_path / "out"
    assert done.source_paths == ["add.py", "old.py"]
    assert done.visible_tests == ["tests/test_add.py::test_small"]
    assert done.interpreter == Path(sys.executable)


def test_an_empty_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    checkout(subject(), tmp_path / "out", solved=False)
    assert read_tree(tmp_path / "out") == START


def test_a_directory_with_something_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "add.py").write_text("mine")
    with pytest.raises(BadInput, match="not empty"):
        checkout(subject(), tmp_path, solved=False)
    assert entries(tmp_path) == {"add.py"}


def test_a_file_in_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(BadInput, match="not a directory"):
        checkout(subject(), tmp_path / "out", solved=False)
    with pytest.raises(BadInput, match="cannot be written"):
        checkout(subject(), tmp_path / "out/below", solved=False)
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize("made_before", [False, True])
def test_a_failure_half_way_leaves_nothing(made_before: bool, tmp_path: Path) -> None:
    cannot_be = SourceTree({**START.files, "z": b"a file", "z/below": b"and a directory"})
    broken = LoadedTask(subject().task, cannot_be, SUITE)
    out = tmp_path / "new" / "out"
    if made_before:
        out.mkdir(parents=True)
    with pytest.raises(BadInput):
        checkout(broken, out, solved=False)
    assert entries(tmp_path) == ({"new", "new/out"} if made_before else set())


def test_there_is_no_solved_tree_without_a_solution(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no solution"):
        checkout(LoadedTask(subject().task, START, SUITE), tmp_path / "out", solved=True)
    assert entries(tmp_path) == set()
