"""What the file system refuses, said in one line."""

import errno
from pathlib import Path

from gametape.core.errors import BadInput, GametapeError, MissingDependency

DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class OutOfDiskSpace(MissingDependency):
    """A disk that is full. What was there is there still, and what was asked for can be done when there is room."""


def printable_path(path: Path) -> str:
    """A path as it can stand in one line of text, whatever is in its name."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in str(path))


def read_error(path: Path, error: OSError) -> GametapeError:
    return BadInput(f"{printable_path(path)}: cannot be read ({error.strerror})")


def write_error(path: Path, error: OSError) -> GametapeError:
    """No room is something the machine lacks; anything else is a path that cannot be used."""
    if error.errno in DISK_FULL_ERRNOS:
        return OutOfDiskSpace(
            f"{printable_path(path)}: no room to write it ({error.strerror}): free some space and try again"
        )
    return BadInput(f"{printable_path(path)}: cannot be written ({error.strerror})")
