"""What is taken from a workspace, and what is left where it is."""

import os
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.core.task import Task, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify import submission as module
from gametape.verify.integrity import find_flags
from gametape.verify.submission import Submission, read_submission

START = SourceTree(
    {
        "src/pkg/__init__.py": b"",
        "src/pkg/core.py": b"def f(): ...\n",
        "src/pkg/conftest.py": b"# the task's own\n",
        "tests/test_core.py": b"from pkg.core import f\n",
        "README.md": b"hello\n",
    }
)


def task_with_sources(source_paths: list[str] | None = None, test_paths: list[str] | None = None) -> LoadedTask:
    task = Task(
        name="t",
        mode="shared",
        instruction="x",
        source_paths=source_paths or ["src"],
        test_paths=test_paths or ["tests"],
        tests=TaskTests(fail_to_pass=["tests/test_core.py::test_f"], pass_to_pass=[]),
    )
    return LoadedTask(task, START, START.under(["tests"]))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    START.write_to(tmp_path)
    return tmp_path


def reasons(submission: Submission) -> dict[str, str]:
    return {entry.path: entry.reason for entry in submission.excluded}


def test_only_declared_sources_are_taken(workspace: Path) -> None:
    (workspace / "src/pkg/new.py").write_text("x = 1\n")
    (workspace / "elsewhere.py").write_text("x = 1\n")
    (workspace / "tests/test_core.py").write_text("def test_f(): pass\n")
    submission = read_submission(task_with_sources(), workspace)
    assert set(submission.sources) == {
        "src/pkg/__init__.py",
        "src/pkg/core.py",
        "src/pkg/conftest.py",
        "src/pkg/new.py",
    }
    assert submission.changed_files == ["elsewhere.py", "src/pkg/new.py", "tests/test_core.py"]
    assert submission.changed_sources == ["src/pkg/new.py"]
    assert not submission.excluded


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("core.pyc", b"x", "byte code"),
        ("__pycache__/core.cpython-311.pyc", b"x", "byte code"),
        ("__pycache__/innocent.py", b"x", "byte code"),
        ("evil.pth", b"import os", "path file"),
        ("fast.so", b"\x7fELF", "binary"),
        ("fast.so.1", b"x", "binary"),
        ("library.py", b"\x7fELF\x02", "binary"),
        ("nul.py", b"x = 1\0", "binary"),
        ("archive.zip", b"PK\x03\x04", "binary"),
        ("sitecustomize.py", b"import os", "configuration"),
        ("sub/conftest.py", b"import os", "configuration"),
        ("pytest.ini", b"[pytest]", "configuration"),
        ("x.dist-info/entry_points.txt", b"[pytest11]", "configuration"),
        (".git/hooks/pre-commit", b"#!/bin/sh", "configuration"),
    ],
)
def test_what_acts_by_being_there_is_refused(workspace: Path, name: str, content: bytes, reason: str) -> None:
    target = workspace / "src/pkg" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    submission = read_submission(task_with_sources(), workspace)
    assert reasons(submission) == {f"src/pkg/{name}": reason}
    assert f"src/pkg/{name}" not in submission.sources
    assert f"src/pkg/{name}" in submission.workspace, "rules must still be able to look at it"


def test_configuration_of_the_task_stays_as_it_was(workspace: Path) -> None:
    (workspace / "src/pkg/conftest.py").write_text("import os; os._exit(0)\n")
    submission = read_submission(task_with_sources(), workspace)
    assert submission.sources.files["src/pkg/conftest.py"] == b"# the task's own\n"
    (workspace / "src/pkg/conftest.py").unlink()
    assert read_submission(task_with_sources(), workspace).sources.files["src/pkg/conftest.py"] == b"# the task's own\n"


def test_a_removed_source_is_gone(workspace: Path) -> None:
    (workspace / "src/pkg/core.py").unlink()
    submission = read_submission(task_with_sources(), workspace)
    assert "src/pkg/core.py" not in submission.sources
    assert submission.removed_files == ["src/pkg/core.py"]


def test_no_link_is_followed(workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("outside") / "secret.py"
    secret.write_text("SECRET = 1\n")
    (workspace / "src/pkg/link.py").symlink_to(secret)
    (workspace / "src/up").symlink_to("..")
    submission = read_submission(task_with_sources(), workspace)
    assert reasons(submission) == {"src/pkg/link.py": "link", "src/up": "link"}
    assert submission.links == {"src/pkg/link.py": str(secret), "src/up": ".."}
    assert not any(b"SECRET" in content for content in submission.workspace.files.values())


def test_special_files_are_not_opened(workspace: Path) -> None:
    os.mkfifo(workspace / "src/pkg/pipe.py")
    assert reasons(read_submission(task_with_sources(), workspace)) == {"src/pkg/pipe.py": "special file"}


def test_odd_names_are_refused(workspace: Path) -> None:
    (Path(os.fsdecode(bytes(workspace / "src/pkg") + b"/\xff.py"))).write_text("x = 1\n")
    (workspace / "src/pkg/new\nline.py").write_text("x = 1\n")
    assert sorted(reasons(read_submission(task_with_sources(), workspace)).values()) == ["odd name", "odd name"]


def test_sizes_are_bounded(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(workspace / "src/pkg/huge.py", "wb") as file:
        file.truncate(module.MOST_BYTES_PER_FILE + 1)
    deep = workspace / "src" / "/".join(["d"] * (module.DEEPEST + 2))
    deep.mkdir(parents=True)
    (deep / "x.py").write_text("x = 1\n")
    submission = read_submission(task_with_sources(), workspace)
    assert sorted(set(reasons(submission).values())) == ["too large"]
    monkeypatch.setattr(module, "MOST_FILES", 2)
    assert len(read_submission(task_with_sources(), workspace).workspace.files) == 2


def test_what_else_lies_in_a_workspace_does_not_crowd_out_its_tests_and_sources(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 20)
    before = read_submission(task_with_sources(), workspace)
    for number in range(60):
        (workspace / f"aa_extra_{number}.txt").write_text("x")
    after = read_submission(task_with_sources(), workspace)
    assert after.sources.files == before.sources.files
    assert before.workspace.files.items() <= after.workspace.files.items()
    assert find_flags(after, []) == []


def test_tests_inside_the_sources_are_not_taken(workspace: Path) -> None:
    (workspace / "src/pkg/tests").mkdir()
    (workspace / "src/pkg/tests/test_x.py").write_text("def test(): pass\n")
    submission = read_submission(task_with_sources(test_paths=["src/pkg/tests", "tests"]), workspace)
    assert "src/pkg/tests/test_x.py" not in submission.sources
    assert "src/pkg/tests/test_x.py" in submission.workspace


def test_the_whole_tree_can_be_the_sources(workspace: Path) -> None:
    submission = read_submission(task_with_sources(source_paths=["."]), workspace)
    assert "README.md" in submission.sources
    assert "tests/test_core.py" not in submission.sources


def test_no_workspace_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such workspace"):
        read_submission(task_with_sources(), tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="no such workspace"):
        read_submission(task_with_sources(), tmp_path / "file")
