"""How much a command has written: in the host directories it may write to, and in its own temporary file systems.

No quota and no copy is needed. The free space of the file system, one cheap call, says when it is worth looking, or
that it cannot say, because somebody else frees space at the same time. A walk then says whether it was this sandbox:
what the files hold that changed since its start. Space that a walk cannot see (a file deleted but held open, a
directory closed to us) counts too.
"""

import contextlib
import os
import stat
import time
from collections.abc import Iterable

from gametape.sandbox.watching import descendants, unnamed_files

_PER_FILE = 1024  # a file without content still takes an inode
_REGULAR_WALK = 0.05
_CLOCK_GRAIN = 0.05  # file times lag behind the clock by up to a tick


class DiskWatch:
    def __init__(self, directories: Iterable[str], limit_bytes: int) -> None:
        self._directories = tuple(directories)
        self._limit = limit_bytes
        self._began = time.time() - _CLOCK_GRAIN
        self._most_free = {directory: _free(directory) for directory in self._directories}
        self._last_free = dict(self._most_free)
        self._masked = False
        self._held = self._allowed = 0
        self._temporary: list[int] = []
        self._outer: int | None = None
        self._walked_at = self._walk_took = 0.0

    def attach(self, outer: int, inner: int, mount_points: Iterable[str]) -> None:
        """The command is about to start: hold on to its temporary file systems, which also outlive it this way."""
        self._outer = outer
        for point in mount_points:
            with contextlib.suppress(OSError):
                self._temporary.append(os.open(f"/proc/{inner}/root{point}", os.O_PATH | os.O_DIRECTORY))

    def exceeded(self, last_look: bool = False) -> bool:
        """Whether the command holds more than it may. Costs a few calls unless the file system really filled up."""
        temporary = self._in_memory()
        if temporary >= self._limit:
            return self._is_too_much(temporary)
        taken = temporary + sum(self._taken(directory) for directory in self._directories)
        if taken < self._limit and not self._masked:
            return False
        began = time.monotonic()
        pause = 0.0 if taken >= self._limit else _REGULAR_WALK
        if not last_look and began < self._walked_at + max(pause, 5 * self._walk_took):
            return False
        walked = [_changed_since(directory, self._began) for directory in self._directories]
        self._walked_at = time.monotonic()
        self._walk_took = self._walked_at - began
        if taken >= self._limit and any(blind for _, blind in walked):
            return self._is_too_much(taken)
        nameless = unnamed_files(descendants(self._outer)) if self._outer else 0
        return self._is_too_much(temporary + sum(size for size, _ in walked) + nameless)

    def begin(self) -> None:
        """From now on only growth is too much: what is over the limit must be possible to remove."""
        self._allowed = max(self._held, self._in_memory())

    def _is_too_much(self, held: int) -> bool:
        self._held = held
        return held >= self._limit and held > self._allowed

    def _in_memory(self) -> int:
        return sum(_used(descriptor) for descriptor in self._temporary)

    def close(self) -> None:
        for descriptor in self._temporary:
            os.close(descriptor)
        self._temporary.clear()

    def _taken(self, directory: str) -> int:
        """An upper bound on our share of the file system's lost space since the start."""
        free = _free(directory)
        self._masked |= free > self._last_free[directory]  # somebody else frees space: ours may hide behind it
        self._last_free[directory] = free
        self._most_free[directory] = max(self._most_free[directory], free)
        return self._most_free[directory] - free


def _free(directory: str) -> int:
    """Free space, with free inodes as part of it: files without content fill a file system too."""
    status = os.statvfs(directory)
    return status.f_bfree * status.f_frsize + status.f_ffree * _PER_FILE


def _used(descriptor: int) -> int:
    status = os.fstatvfs(descriptor)
    return (status.f_blocks - status.f_bfree) * status.f_frsize + (status.f_files - status.f_ffree) * _PER_FILE


def _changed_since(top: str, moment: float) -> tuple[int, bool]:
    """Space in files below `top` that changed since a moment; and whether part of the tree could not be seen."""
    total, blind, todo = 0, False, [top]
    linked: set[tuple[int, int]] = set()
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISDIR(status.st_mode):
                            todo.append(entry.path)
                        if status.st_ctime >= moment and (status.st_dev, status.st_ino) not in linked:
                            linked.add((status.st_dev, status.st_ino))
                            total += status.st_blocks * 512 + _PER_FILE
        except FileNotFoundError:
            continue
        except OSError:
            blind = True
    return total, blind
