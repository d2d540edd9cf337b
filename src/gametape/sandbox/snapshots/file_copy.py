"""Copying one file of a hostile tree: data, holes, attributes, times. It follows no link and waits for no pipe."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from gametape.sandbox.snapshots.durable_io import start_writeback

KEPT_MODE = 0o1777
"""Set-id bits are not kept: a store must not hold programs that run as somebody else."""

CopyDirection = Literal["in", "within", "out"]
"""Into a layer, from one layer to another, or out of layers into plain files."""

CLOSED_MODE_XATTR = "user.gametape.mode"
"""An ordinary user could not read what is closed to its owner, so it lies in a layer open, with its mode noted here."""

_TRIES = 3
_CHUNK = 1 << 24
_SMALL = 1 << 17
_NO_COPY_RANGE = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF)


class NotRegular(OSError):
    """The entry became something else while it was being looked at."""


def copy_file(
    name: str, source: int, target: int, direction: CopyDirection, flush: bool = False
) -> tuple[os.stat_result | None, os.stat_result]:
    """Copy a regular file between two directories. Returns the state of the original that was copied, and the copy's.

    A file that changes all the while is taken as it was at the last of a few tries, and its state is None. With
    `flush`, even a write through a memory map that exists already will be told from that state.
    """
    with _readable(name, source) as (fd, mode):
        out = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=target)
        try:
            for attempt in range(_TRIES):
                if attempt:
                    os.ftruncate(out, 0)  # costs a flush on some filesystems, even of an empty file
                if flush:
                    start_writeback(fd)
                before = os.fstat(fd)
                _copy_data(fd, out, before)
                noted = copy_attributes(fd, out, direction)
                stable = os.fstat(fd).st_ctime_ns == before.st_ctime_ns
                if stable:
                    break
            set_mode(out, mode if noted is None else noted, direction)
            os.utime(out, ns=(before.st_atime_ns, before.st_mtime_ns))
            copied = os.fstat(out)
        finally:
            os.close(out)
    return before if stable else None, copied


def copy_attributes(source: int, target: int, direction: CopyDirection) -> int | None:
    """Copy attributes in `user.*`, save those with a meaning to overlayfs or us. Returns a mode noted on the way out.

    What is noted on something that comes from outside was not written by us, and is dropped.
    """
    noted = None
    for name in os.listxattr(source):
        if name == CLOSED_MODE_XATTR and direction != "within":
            noted = int(os.getxattr(source, name), 8) if direction == "out" else None
        elif name.startswith("user.") and not name.startswith("user.overlay."):
            try:
                os.setxattr(target, name, os.getxattr(source, name))
            except OSError as error:
                if error.errno not in (errno.ENODATA, errno.ENOTSUP, errno.ERANGE):
                    raise
    return noted


def set_mode(fd: int, mode: int, direction: CopyDirection) -> None:
    """Give a copy its mode; in a layer, its owner can always read it."""
    mode = stat.S_IMODE(mode) & KEPT_MODE
    if direction == "in" and is_closed(mode, stat.S_ISDIR(os.fstat(fd).st_mode)):
        with suppress(OSError):  # it may have been given so many attributes that there is no room for another
            os.setxattr(fd, CLOSED_MODE_XATTR, b"%o" % mode)
        mode |= 0o500 if stat.S_ISDIR(os.fstat(fd).st_mode) else 0o400
    os.fchmod(fd, mode)


def is_closed(mode: int, directory: bool) -> bool:
    """Whether the mode keeps the owner out. It never does with root."""
    need = 0o500 if directory else 0o400
    return os.geteuid() != 0 and mode & need != need


def finish_directory(fd: int, status: os.stat_result, mode: int | None, direction: CopyDirection) -> None:
    """Give a filled directory the times of the original, and its mode, or another that was noted."""
    set_mode(fd, status.st_mode if mode is None else mode, direction)
    os.utime(fd, ns=(status.st_atime_ns, status.st_mtime_ns))


def same_content(name: str, first: int, second: int) -> bool:
    """Whether two regular files hold the same bytes."""
    with _readable(name, first) as (one, _), _readable(name, second) as (other, _):
        while True:
            chunk = os.read(one, _SMALL)
            if chunk != os.read(other, _SMALL):
                return False
            if not chunk:
                return True


@contextmanager
def _readable(name: str, directory: int) -> Iterator[tuple[int, int]]:
    """A regular file open for reading and its mode, which is put back if an ordinary user had to change it."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
    restore = None
    try:
        fd = os.open(name, flags, dir_fd=directory)
    except PermissionError:
        fd, restore = _force_open(name, directory)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise NotRegular(errno.EINVAL, "not a regular file")
        if restore is not None:
            os.fchmod(fd, restore)
        yield fd, stat.S_IMODE(status.st_mode) if restore is None else restore
    finally:
        os.close(fd)


def _force_open(name: str, directory: int) -> tuple[int, int]:
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise NotRegular(errno.EINVAL, "not a regular file")
        mode = stat.S_IMODE(status.st_mode)
        path = f"/proc/self/fd/{handle}"
        os.chmod(path, mode | 0o400)
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), mode
    finally:
        os.close(handle)


def _copy_data(source: int, target: int, status: os.stat_result) -> None:
    size = status.st_size
    if status.st_blocks * 512 >= size:
        _copy_range(source, target, 0, size)
        return
    end = 0
    while end < size:
        try:
            begin = os.lseek(source, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break
        end = min(os.lseek(source, begin, os.SEEK_HOLE), size)
        _copy_range(source, target, begin, end - begin)
    os.ftruncate(target, size)


def _copy_range(source: int, target: int, begin: int, length: int) -> None:
    done = 0
    whole = length > _SMALL
    while done < length:
        at = begin + done
        if whole:
            try:
                moved = os.copy_file_range(source, target, min(_CHUNK, length - done), at, at)
            except OSError as error:
                if error.errno not in _NO_COPY_RANGE:
                    raise
                whole = False
                continue
        else:
            moved = _write_all(target, os.pread(source, min(_SMALL, length - done), at), at)
        if not moved:
            return  # it became shorter
        done += moved


def _write_all(target: int, data: bytes, at: int) -> int:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(target, rest, at)
        rest, at = rest[written:], at + written
    return len(data)
