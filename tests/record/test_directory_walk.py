"""Directories nested deeper than Python calls itself."""

import os
from pathlib import Path

import pytest

from gametape.record.directory_walk import make_directories, walk
from gametape.record.source_tree import SourceTree, read_tree
from gametape.sandbox.snapshots.cleanup import scratch_directory

DEPTH = 1_200
DEEP = "/".join(["d"] * DEPTH)


def test_a_tree_of_any_depth_is_written_read_and_removed() -> None:
    tree = SourceTree({f"{DEEP}/f.py": b"x = 1\n", "a.py": b""}, frozenset({f"{DEEP}/f.py"}))
    with scratch_directory("gametape-deep-") as scratch:
        tree.write_to(scratch)
        make_directories(scratch / DEEP)
        assert len(list(walk(scratch))) == DEPTH + 1
        assert read_tree(scratch).digest == tree.digest
    assert not scratch.exists()


def test_it_is_what_the_library_says_of_shallow_trees(tmp_path: Path) -> None:
    for name in ("b/x/1", "b/2", "a/3", ".h/4", "5"):
        make_directories((tmp_path / name).parent)
        (tmp_path / name).write_text("")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "b/nowhere").symlink_to("none")

    def sorted_walk(walked: object) -> list[tuple[str, list[str], list[str]]]:
        seen = []
        for directory, inner, names in walked:  # type: ignore[attr-defined]
            inner[:] = sorted(name for name in inner if not name.startswith("."))
            seen.append((directory, [*inner], sorted(names)))
        return seen

    assert sorted_walk(walk(tmp_path)) == sorted_walk(os.walk(tmp_path))
    assert not list(walk(tmp_path / "none"))
    with pytest.raises(FileNotFoundError):
        list(walk(tmp_path / "none", _raise))


def _raise(error: OSError) -> None:
    raise error
