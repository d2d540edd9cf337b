import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.record.atomic import write_atomically


def test_the_whole_content_replaces_the_old_and_nothing_is_left_over(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    write_atomically(target, b"new" * 100_000)
    assert target.read_bytes() == b"new" * 100_000
    assert list(tmp_path.iterdir()) == [target]


def test_a_new_file_gets_the_usual_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_a_path_that_cannot_be_written_is_named_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"missing/file: cannot be written \(No such file or directory\)$"):
        write_atomically(tmp_path / "missing" / "file", b"")
    (tmp_path / "dir").mkdir()
    with pytest.raises(BadInput, match="dir: cannot be written"):
        write_atomically(tmp_path / "dir", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["dir"]


FULL_DISK = """
import sys
from pathlib import Path
from gametape.core.errors import MissingDependency
from gametape.record.atomic import write_atomically
try:
    write_atomically(Path(sys.argv[1]), b"x" * 100_000)
except MissingDependency as error:
    print(error)
"""


def test_without_room_the_old_content_stays(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, target],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)),
        check=True,
    )
    assert "free some space" in done.stdout
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]
