"""Opening files that somebody else may have put there: a regular file or nothing, and no more of it than is asked for.

A pipe does not make the reader wait, a link is not followed, a device is not touched, and neither an endless line nor a
file that is mostly holes takes more memory or time than its bounds allow.
"""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

LONGEST_LINE = 1 << 20
MOST_AT_ONCE = 256 << 20
"""Bytes that one look at a growing log goes through."""
_BUFFER = 1 << 18


def regular_file_descriptor(path: Path) -> int:
    """A regular file, open for reading. Raises OSError for anything else."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC)
    except ValueError:
        raise OSError(errno.EINVAL, "Not a path", str(path)) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    return fd


def open_regular(path: Path) -> BinaryIO:
    """A regular file, open for reading. Raises OSError for anything else."""
    return os.fdopen(regular_file_descriptor(path), "rb", _BUFFER)


def is_regular(path: Path) -> bool:
    """Whether a regular file lies at a path itself, not behind a link."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def read_regular(path: Path, most: int) -> bytes:
    """A whole file. Raises OSError where it is longer than that, or no regular file."""
    data = read_beginning(path, most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"More than {most:,} bytes", str(path))
    return data


def read_beginning(path: Path, most: int) -> bytes:
    """The first bytes of a file. Raises OSError for what is no regular file."""
    with open_regular(path) as file:
        return file.read(most)


class PassedLine(NamedTuple):
    """A line of a log, with its newline, or None for a part of one that is too long. `end` is where the next begins;
    `goes_on` says that the rest of the same line does."""

    line: bytes | None
    end: int
    goes_on: bool = False


def passed_lines(
    file: BinaryIO, start: int, inside: bool = False, longest: int = LONGEST_LINE, most: int = MOST_AT_ONCE
) -> Iterator[PassedLine]:
    """The lines from a place in a log, at least one and otherwise not many more bytes than `most`. An unfinished last
    line is not there yet. One that is too long is passed over in parts; `inside` says that `start` lies in one."""
    file.seek(start)
    at = start
    while at - start < most:
        line = file.readline(longest + 1)
        ended = line.endswith(b"\n")
        short = len(line) <= longest
        if not line or (short and not ended and not inside):
            return
        at += len(line)
        yield PassedLine(line if short and not inside else None, at, goes_on=not ended)
        inside = not ended
