import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from gametape.record.source_tree import SourceTree, read_tree
from gametape.tasks.loader import read_task
from gametape.verify.git_patch import make_git_patch

from ..tasks.made import TASKS


def text(*lines: str) -> bytes:
    return "".join(lines).encode()


def muddle(seed: int) -> SourceTree:
    """Files of few different lines, so that there are many ways to read what changed."""
    chosen = random.Random(seed)
    return SourceTree(
        {f"{name}.py": text(*chosen.choices(["a\n", "b\n", "\n"], k=chosen.randrange(40))) for name in range(99)}
    )


LINES = [f"line {number}\n" for number in range(60)]


def without(*numbers: int) -> bytes:
    return text(*(line for number, line in enumerate(LINES) if number not in numbers))


def one(before: bytes, after: bytes, name: str = "a.py") -> tuple[SourceTree, SourceTree]:
    return SourceTree({name: before}), SourceTree({name: after})


TEXT = {
    "one line": one(b"a\n", b"b\n"),
    "far apart": one(text(*LINES), without(3, 4, 30, 58)),
    "at both ends": one(text(*LINES), without(0, 59)),
    "added at the start": one(text(*LINES), b"new\n" + text(*LINES)),
    "added at the end": one(text(*LINES), text(*LINES) + b"new\n"),
    "one of many that are alike": one(b"same\n" * 9, b"same\n" * 8),
    "alike, with others between": one(b"a\nsame\na\nsame\na\n", b"a\nsame\nb\na\nsame\na\nsame\na\n"),
    "between blank lines": one(text(*LINES, "\n", "\n", *LINES), text(*LINES, "\n", "a\n", "\n", "\n", *LINES)),
    "many muddled files": (muddle(1), muddle(2)),
    "to nothing": one(text(*LINES), b""),
    "from nothing": one(b"", b"a\n"),
    "line end lost": one(b"a\nb\n", b"a\nb"),
    "line end gained": one(b"a\nb", b"a\nb\n"),
    "no line end in both": one(b"a\nb", b"c\nb"),
    "no line end, another line": one(b"a", b"b"),
    "carriage returns": one(b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nc\r\n"),
    "carriage returns lost": one(b"a\r\nb\r\n", b"a\nb\r\n"),
    "other separators": one("a\x0bb\x0cc\x1cd\u2028e\rf\n".encode(), "a\x0bb\x0cc\x1cD\u2028e\rf\n".encode()),
    "letters": one("é\n".encode(), "ü 🎈\n".encode()),
    "looks like a patch": one(b"-- a\n++ b\n@@ -1 +1 @@\n", b"-- c\n++ b\n\\ No newline\n"),
    "new and removed": (SourceTree({"old/a.py": b"a\n", "b.py": b""}), SourceTree({"new/a.py": b"a\n", "b.py": b""})),
    "an empty file comes": (SourceTree({"b": b"b\n"}), SourceTree({"b": b"b\n", "a/__init__.py": b""})),
    "an empty file goes": (SourceTree({"b": b"b\n", "a": b""}), SourceTree({"b": b"b\n"})),
    "made executable": (SourceTree({"run": b"a\n"}), SourceTree({"run": b"a\n"}, frozenset({"run"}))),
    "no longer executable": (SourceTree({"run": b"a\n"}, frozenset({"run"})), SourceTree({"run": b"b\n"})),
    "new and executable": (SourceTree({"b": b"b\n"}), SourceTree({"b": b"b\n", "run": b"a\n"}, frozenset({"run"}))),
    "a space in the name": one(b"a\n", b"b\n", "a b/c d.txt"),
    "letters in the name": one(b"a\n", b"b\n", "größe/🎈.txt"),
    "odd names": one(b"a\n", b"b\n", 'a"b\\c\td.txt'),
    "a new one with a space": (SourceTree({"b": b"b\n"}), SourceTree({"b": b"b\n", "a b.txt": b"a\n"})),
}
ONLY_GIT = {
    "a file becomes a directory": (SourceTree({"a": b"a\n"}), SourceTree({"a/b": b"b\n"})),
    "a directory becomes a file": (SourceTree({"a/b": b"b\n"}), SourceTree({"a": b"a\n"})),
    "an empty one with a space": (SourceTree({"b": b"b\n"}), SourceTree({"b": b"b\n", "a b.txt": b""})),
    "a zero byte": one(b"a\0b", b"a\0c"),
    "another encoding": one("é\n".encode("latin-1"), "ü\n".encode("latin-1")),
    "becomes text": one(bytes(range(256)) * 9, b"a\n"),
    "becomes empty": one(b"\0", b""),
    "large": one(b"\0", bytes((n * n) % 251 for n in range(5000))),
    "new": (SourceTree({"b": b"b\n"}), SourceTree({"b": b"b\n", "a b.bin": b"\xff\0"}, frozenset({"a b.bin"}))),
    "removed": (SourceTree({"b": b"b\n", "é.bin": b"\xff"}), SourceTree({"b": b"b\n"})),
}
"""What `patch` does not know."""


def applied(command: list[str], before: SourceTree, patch: str, place: Path) -> SourceTree:
    before.write_to(place)
    place.mkdir(exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(place), "GIT_CEILING_DIRECTORIES": str(place.parent)}
    subprocess.run(command, cwd=place, input=patch.encode(), check=True, capture_output=True, env=environment)
    return read_tree(place)


def by_git(before: SourceTree, patch: str, place: Path) -> SourceTree:
    return applied(["git", "apply", "-"], before, patch, place)


def by_patch(before: SourceTree, patch: str, place: Path) -> SourceTree:
    return applied(["patch", "-p1", "--silent", "--fuzz=0"], before, patch, place)


@pytest.mark.parametrize(("before", "after"), [*TEXT.values(), *ONLY_GIT.values()], ids=[*TEXT, *ONLY_GIT])
def test_git_makes_the_one_into_the_other_and_back(before: SourceTree, after: SourceTree, tmp_path: Path) -> None:
    assert by_git(before, make_git_patch(before, after), tmp_path / "there") == after
    assert by_git(after, make_git_patch(after, before), tmp_path / "back") == before


@pytest.mark.skipif(shutil.which("patch") is None, reason="there is no patch command")
@pytest.mark.parametrize(("before", "after"), TEXT.values(), ids=TEXT)
def test_patch_does_as_well(before: SourceTree, after: SourceTree, tmp_path: Path) -> None:
    assert by_patch(before, make_git_patch(before, after), tmp_path / "there") == after
    assert by_patch(after, make_git_patch(after, before), tmp_path / "back") == before


@pytest.mark.parametrize("task", TASKS, ids=lambda path: path.name)
def test_the_reference_of_our_tasks_can_be_applied(task: Path, tmp_path: Path) -> None:
    loaded_task = read_task(task)
    assert loaded_task.reference is not None
    patch = make_git_patch(loaded_task.start, loaded_task.reference)
    assert by_git(loaded_task.start, patch, tmp_path / "git") == loaded_task.reference


def test_it_reads_as_git_writes_it() -> None:
    before = SourceTree({"src/a.py": text(*LINES[:9])})
    after = SourceTree({"src/a.py": text(*LINES[:4], "new\n", *LINES[5:9])})
    assert make_git_patch(before, after).splitlines() == [
        "diff --git a/src/a.py b/src/a.py",
        "index 0079c5a0104c3fa9e5078d56bf8de4e84c511d8c..86abeb28036fb4551ef38e9130a340daad1d49b1 100644",
        "--- a/src/a.py",
        "+++ b/src/a.py",
        "@@ -2,7 +2,7 @@",
        " line 1",
        " line 2",
        " line 3",
        "-line 4",
        "+new",
        " line 5",
        " line 6",
        " line 7",
    ]


def test_nothing_differs() -> None:
    tree = SourceTree({"a": b"a\n", "b": b"\0"}, frozenset({"a"}))
    assert make_git_patch(tree, tree) == ""


def test_lines_that_repeat_without_end_are_replaced_as_a_whole() -> None:
    """Each of these lines is too rare to be left out of a comparison, and has hundreds of equals."""
    chosen = random.Random(1)
    before, after = (
        ["first\n", f"{side}\n", *(f"{chosen.randrange(150)}\n" for _ in range(60_000)), f"{side}\n"]
        for side in ("old", "new")
    )
    patch = make_git_patch(*one(text(*before), text(*after)))
    assert f"@@ -1,{len(before)} +1,{len(after)} @@" in patch
    assert patch.count("\n-") - 1 == len(before) - 1
