"""Only regular files are opened, and no line and no hole takes more than its bounds."""

import io
import os
import socket
from pathlib import Path

import pytest

from gametape.record.regular_file import (
    PassedLine,
    is_regular,
    open_regular,
    passed_lines,
    read_beginning,
    read_regular,
)


def test_nothing_but_a_regular_file_is_opened(tmp_path: Path) -> None:
    plain, pipe, link, directory = (tmp_path / name for name in ("plain", "pipe", "link", "directory"))
    plain.write_bytes(b"text")
    os.mkfifo(pipe)
    link.symlink_to(plain)
    directory.mkdir()
    open_files = len(os.listdir("/proc/self/fd"))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for path in (pipe, link, directory, tmp_path / "socket", Path("/dev/zero"), Path("nul\0byte"), tmp_path / "no"):
            assert not is_regular(path)
            with pytest.raises(OSError, match=r"Not a|No such|symbolic links"):
                open_regular(path)
    assert len(os.listdir("/proc/self/fd")) == open_files
    assert is_regular(plain)
    assert (read_regular(plain, 4), read_beginning(plain, 2)) == (b"text", b"te")
    with pytest.raises(OSError, match="More than 3 bytes"):
        read_regular(plain, 3)


def test_a_line_that_is_too_long_is_passed_over_in_parts_and_an_unfinished_one_waits() -> None:
    data = b"ab\n" + b"x" * 25 + b"\ncd\nef"
    told = [*passed_lines(io.BytesIO(data), 0, longest=9)]
    assert told == [
        PassedLine(b"ab\n", 3),
        PassedLine(None, 13, goes_on=True),
        PassedLine(None, 23, goes_on=True),
        PassedLine(None, 29),
        PassedLine(b"cd\n", 32),
    ]
    for place, last in enumerate(told):
        assert [*passed_lines(io.BytesIO(data), last.end, last.goes_on, longest=9)] == told[place + 1 :]
    assert [*passed_lines(io.BytesIO(b"xyz"), 1, inside=True, longest=9)] == [PassedLine(None, 3, goes_on=True)]


def test_one_look_goes_through_a_bounded_part() -> None:
    data = io.BytesIO(b"ab\n" * 10)
    assert [line.end for line in passed_lines(data, 0, most=7)] == [3, 6, 9]
    assert [line.end for line in passed_lines(data, 9, most=1)] == [12]


def test_a_hole_is_passed_over_without_being_kept(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    path.write_bytes(b"a\n")
    os.truncate(path, 1 << 40)
    with open_regular(path) as file:
        told = [*passed_lines(file, 0, most=8 << 20)]
    assert told[0].line == b"a\n"
    assert {line.line for line in told[1:]} == {None}
    assert told[-1].end < 10 << 20
