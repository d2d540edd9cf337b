import os
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.sandbox import workspace_files


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    workspace_files.write_file(str(tmp_path), "a/b/c.txt", b"one")
    workspace_files.write_file(str(tmp_path), "a/b/c.txt", b"two")
    assert workspace_files.read_file(str(tmp_path), "a/b/c.txt") == b"two"
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["c.txt"]


def test_a_file_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("old")
    (tmp_path / "run.sh").chmod(0o4755)
    workspace_files.write_file(str(tmp_path), "run.sh", b"new")
    assert (tmp_path / "run.sh").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("path", ["", ".", "/etc/passwd", "../x", "a/../../x", "a\0b", "x" * 300, "missing"])
def test_paths_that_lead_nowhere_or_out_are_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(BadInput):
        workspace_files.read_file(str(tmp_path), path)


@pytest.fixture
def trapped(tmp_path: Path) -> Path:
    """A workspace full of traps, beside a secret that must be neither read nor written."""
    root = tmp_path / "workspace"
    root.mkdir()
    (tmp_path / "secret").write_text("swordfish")
    (tmp_path / "elsewhere").mkdir()
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "directory").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(root / "fifo")
    (root / "folder").mkdir()
    return root


@pytest.mark.parametrize("path", ["link", "directory/x", "fifo", "folder"])
def test_links_pipes_and_directories_are_not_read(trapped: Path, path: str) -> None:
    with pytest.raises(BadInput):
        workspace_files.read_file(str(trapped), path)


def test_a_planted_link_is_replaced_not_followed(trapped: Path) -> None:
    workspace_files.write_file(str(trapped), "link", b"new")
    assert (trapped.parent / "secret").read_text() == "swordfish"
    assert workspace_files.read_file(str(trapped), "link") == b"new"
    with pytest.raises(BadInput):
        workspace_files.write_file(str(trapped), "directory/x", b"out")
    assert not list((trapped.parent / "elsewhere").iterdir())


def test_a_large_file_is_refused_not_swallowed(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * 11)
    with pytest.raises(BadInput):
        workspace_files.read_file(str(tmp_path), "big", most=10)
