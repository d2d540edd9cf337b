"""A position in a directory tree that hostile code may have made.

One open directory however deep the tree goes, no path strings, no links followed: down by a name, up by `..`, and each
step up is checked to arrive where the step down began.
"""

import errno
import os
from collections.abc import Callable

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_A_DIRECTORY = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class TreeMoved(OSError):
    """The tree was rearranged while it was being walked."""


class TreeCursor:
    """Walks one tree in step with others: where a directory is missing here, it waits until they come back up.

    `need` are the permissions its owner must have on each directory (0o500 to read, 0o700 to write). An ordinary user
    gives itself what is missing and, unless the tree is to be removed, puts the old mode back on the way out. Root
    needs nothing.
    """

    def __init__(self, fd: int, need: int = 0o500, restore: bool = True) -> None:
        self.fd = fd
        self._need = need if os.geteuid() != 0 else 0
        self._restore = restore
        self._waiting = 0
        self._current = _identity(fd)
        self._ancestors: list[tuple[tuple[int, int], int | None]] = []
        self.root_status = os.fstat(fd)
        self._root_mode = _unlock(fd, self._need)

    @property
    def present(self) -> bool:
        """Whether this tree has the directory at which the walk stands."""
        return not self._waiting

    def skip(self) -> None:
        """The walk goes down to where this tree shall not follow."""
        self._waiting += 1

    def enter(self, name: str) -> bool:
        """Go down, if there is such a directory."""
        if self._waiting:
            self._waiting += 1
            return False
        try:
            fd, mode = open_directory(name, self.fd, self._need)
        except OSError as error:
            if error.errno not in _NOT_A_DIRECTORY:
                raise
            self._waiting = 1
            return False
        self._ancestors.append((self._current, mode))
        os.close(self.fd)
        self.fd, self._current = fd, _identity(fd)
        return True

    def leave(self, finish: Callable[[int], None] | None = None) -> None:
        """Go up. `finish` is called with the directory that is left, once the way up no longer needs it."""
        if self._waiting:
            self._waiting -= 1
            return
        above, mode = self._ancestors.pop()
        parent = os.open("..", _DIRECTORY, dir_fd=self.fd)
        try:
            if _identity(parent) != above:
                raise TreeMoved(errno.ESTALE, "a directory was moved while its tree was being read")
            if mode is not None and self._restore:
                os.fchmod(self.fd, mode)
            if finish:
                finish(self.fd)
        except BaseException:
            os.close(parent)
            raise
        os.close(self.fd)
        self.fd, self._current = parent, above

    def close(self) -> None:
        """Close at any position; modes are put back, unless the tree was rearranged."""
        self._waiting = 0
        try:
            while self._ancestors and self._need and self._restore:
                self.leave()
            if self._root_mode is not None and self._restore:
                os.fchmod(self.fd, self._root_mode)
        except TreeMoved:
            return
        finally:
            os.close(self.fd)


def open_directory(name: str, parent: int, need: int = 0) -> tuple[int, int | None]:
    """A directory's descriptor, and the mode to put back if it had to be changed to get in."""
    try:
        fd = os.open(name, _DIRECTORY, dir_fd=parent)
    except PermissionError:
        if not need:
            raise
    else:
        return fd, _unlock(fd, need)
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        mode = os.fstat(handle).st_mode & 0o7777
        path = f"/proc/self/fd/{handle}"
        os.chmod(path, mode | need)
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), mode
    finally:
        os.close(handle)


def _unlock(fd: int, need: int) -> int | None:
    mode = os.fstat(fd).st_mode & 0o7777
    if mode & need == need:
        return None
    os.fchmod(fd, mode | need)
    return mode


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
