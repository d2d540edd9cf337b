"""The one lock between processes: an exclusive `flock` on a file or a directory.

The kernel releases it when the last process that holds the descriptor ends, however it ends. It also holds between the
threads of one process, because every call opens the file anew.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.record.errors import printable_path


@contextmanager
def locked(path: Path, *, inheritable: bool = False) -> Iterator[None]:
    """Wait for a file's lock and hold it for the block. With `inheritable`, a child process that is started meanwhile
    holds it too, until it ends."""
    fd = _open_lock_file(path)
    try:
        os.set_inheritable(fd, inheritable)
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def hold_lock(path: Path) -> int:
    """Take a file's lock until the returned descriptor is closed or this process ends. BlockingIOError if it is held
    already."""
    fd = _open_lock_file(path)
    if not try_lock(fd):
        os.close(fd)
        raise BlockingIOError(f"{path} is locked")
    return fd


def is_locked(path: Path) -> bool:
    """Whether a running process holds the file's lock."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not try_lock(fd)
    finally:
        os.close(fd)


def held_files() -> set[tuple[int, int, int]]:
    """The files that running processes hold a lock of, as major and minor device and inode, by the kernel's list. To
    look here, unlike `is_locked`, keeps nobody from taking the lock. Empty where the kernel has no such list."""
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return set()
    return {
        (int(major, 16), int(minor, 16), int(inode))
        for line in lines
        if " -> " not in line and "FLOCK" in line
        for major, minor, inode in [line.split()[5].split(":")]
    }


def is_held(path: Path, held: set[tuple[int, int, int]]) -> bool:
    """Whether a file is one of those in `held_files`."""
    try:
        status = path.stat()
    except OSError:
        return False
    return (os.major(status.st_dev), os.minor(status.st_dev), status.st_ino) in held


def try_lock(fd: int) -> bool:
    """Lock an open file or directory, unless somebody else has."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def require_lock(fd: int, path: Path, busy: str = "another process is writing it") -> None:
    """Lock an open file or directory, or raise `BadInput` that says who is `busy` with it."""
    if not try_lock(fd):
        raise BadInput(f"{printable_path(path)}: {busy}")


def _open_lock_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
