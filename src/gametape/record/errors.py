"""Errors of the file system as one-line messages."""

import errno
from pathlib import Path

from gametape.core.errors import BadInput, GametapeError, MissingDependency

DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class OutOfDiskSpace(MissingDependency):
    """The disk is full. What was there is unchanged, and the same call works when there is room."""


def printable_path(path: Path) -> str:
    """A path as one line of text, whatever characters it has."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(path))


def read_error(path: Path, error: OSError) -> GametapeError:
    return BadInput(f"{printable_path(path)}: cannot be read ({error.strerror})")


def write_error(path: Path, error: OSError) -> GametapeError:
    """`OutOfDiskSpace` if there is no room; else `BadInput`, because the path cannot be written."""
    if error.errno in DISK_FULL_ERRNOS:
        return OutOfDiskSpace(
            f"{printable_path(path)}: no room to write it ({error.strerror}): free some space and try again"
        )
    return BadInput(f"{printable_path(path)}: cannot be written ({error.strerror})")
