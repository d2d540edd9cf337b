"""The limit of disk space where the kernel holds none: in directories of the host, which have no quota of their own.

Scratch file systems are sized to the limit, so writing to them fails at it. In a directory of the host one file cannot
grow past the limit (`RLIMIT_FSIZE`) and space cannot be taken without writing to it (`fallocate` is refused); what is
left is many files, written no faster than memory can be copied. The watch looks as often as that speed demands.
"""

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from gametape.sandbox.policy import SandboxLimits
from gametape.sandbox.resource_watch import bytes_written, children, continue_processes, descendants, stop_processes
from gametape.sandbox.unnamed_files import UnnamedFiles, memory_device

_PER_FILE = 1024  # a file without content still takes an inode
_FASTEST = 4 << 20  # bytes a millisecond that a sandbox can write
_REGULAR_WALK = 0.05
_IDLE_WALK = 0.5
_SHORT_WALK = 0.005
_ROUNDS = 20
_BETWEEN_LOOKS = 64


class DiskWatch:
    """How much a command has added to what was there before it. The file system's free space is asked first, which
    costs a call. A walk over the writable directories confirms it, and finds what takes no space yet (holes). It is
    made at once, with the command stopped, when free space has shrunk by the limit; often, while others free space;
    else rarely. Space that is gone and that no walk finds is a debt of the command while it can hide files; the debt
    sinks when free space rises."""

    def __init__(self, directories: Iterable[str], limit_bytes: int) -> None:
        self._directories = tuple(directories)
        self._limit = self._room = limit_bytes
        self._most_free = self._last_free = self._free_space()
        self._enough = math.inf
        self._before = self._walk(lambda: False)
        self._enough = self._before.held + limit_bytes
        self._certain = _Certainty(self._most_free, self._before.taken)
        self._masked = False
        self._held = self._on_disk = self._missing = self._allowed = 0
        self._temporary: list[int] = []
        self._ignored = {memory_device()}
        self._roots: Iterable[int] = ()
        self._writes = _WriteCount()

    def attach(self, roots: Iterable[int], inner: int, mount_points: Iterable[str]) -> None:
        """The command is about to start: open its temporary file systems, which keeps them until `close`. `roots` are
        the processes whose descendants are all of the sandbox's."""
        self._roots = roots
        devices: set[int] = set()
        for point in mount_points:
            with contextlib.suppress(OSError):
                descriptor = os.open(f"/proc/{inner}/root{point}", os.O_PATH | os.O_DIRECTORY)
                self._temporary.append(descriptor)
                if (device := os.fstat(descriptor).st_dev) in devices:
                    os.close(self._temporary.pop())  # one file system at several places
                devices.add(device)
        self._ignored |= devices

    def exceeded(self, last_look: bool = False) -> bool:
        """Whether the command uses more than its limit. Costs a few calls unless the file system really filled up."""
        temporary = self._in_memory()
        self._room = self._limit - temporary
        if temporary >= self._limit:
            return self._is_too_much(temporary)
        if not self._directories:
            return False
        lost = self._lost()
        if self._masked:
            self._writes.update(self._processes())
        estimate = temporary + self._on_disk + self._missing + max(lost, self._writes.since_walk)
        full = estimate >= self._limit
        self._room = self._limit - estimate
        if not last_look and not self._is_time_to_walk(full):
            return False
        if last_look:  # nobody should wait long for the end of a command
            return self._is_confirmed(temporary, estimate, (lambda: False) if full else _deadline(_SHORT_WALK))
        if not full and not self._is_confirmed(temporary, estimate, self._is_nearly_full):
            return False
        stopped = stop_processes(self._inner_processes, _ROUNDS)  # or they would go on while it is looked at
        too_much = self._is_confirmed(temporary, estimate, lambda: False, still=True)
        if not too_much:
            continue_processes(stopped)
        return too_much

    def has_file_of(self, size: int) -> bool:
        """Whether a file is as large as this, and none was before."""
        places = (*self._directories, *(f"/proc/self/fd/{descriptor}" for descriptor in self._temporary))
        return self._before.largest < size <= _largest(places)

    def _is_nearly_full(self) -> bool:
        """The command goes on during a look, which then has to end: the next one is made with the command stopped."""
        return self._in_memory() + self._on_disk + self._missing + self._lost() >= self._limit

    def pause_ms(self, most: int) -> int:
        """How long the command needs at least to write what it may still write; not less than a millisecond."""
        if self._room <= 0:
            return most
        return max(1, min(most, self._room // _FASTEST))

    def reset_baseline(self) -> None:
        """From now on only growth exceeds the limit: a command must be able to remove what is above it."""
        self._allowed = max(self._held, self._in_memory())

    def close(self) -> None:
        for descriptor in self._temporary:
            os.close(descriptor)
        self._temporary.clear()

    def _is_confirmed(self, temporary: int, estimate: int, hurry: Callable[[], bool], still: bool = False) -> bool:
        """Whether a walk, which ends early in a hurry, finds that it is too much. `still` says that nothing moves."""
        pids = self._processes()
        self._writes.update(pids)
        free = self._free_space()
        walk = self._walk(hurry)
        if walk.blind and estimate >= self._limit:
            return self._is_too_much(estimate)
        unnamed = UnnamedFiles(self._ignored)
        unnamed.search(pids, {*self._roots, *(child for root in self._roots for child in children(root))})
        for size, taken in unnamed.sizes.values():
            walk.count(size, taken)
        on_disk = max(0, walk.held - self._before.held, walk.taken - self._before.taken)
        if walk.complete:  # what is estimated from now on counts from here
            self._most_free = self._last_free = free
            self._writes.since_walk, self._masked = 0, False
            self._missing = self._certain.missing(free, walk.taken)
            if still:
                self._missing = self._missing if unnamed.hidden else 0
                self._certain = _Certainty(free, walk.taken, self._missing)
        elif on_disk < self._limit:
            return False
        self._on_disk = on_disk
        return self._is_too_much(temporary + on_disk + (self._certain.debt if still else 0))

    def _processes(self) -> list[int]:
        return [pid for root in self._roots for pid in descendants(root)]

    def _inner_processes(self) -> list[int]:
        """Every process of the sandbox but its outermost ones."""
        outermost = set(self._roots)
        return [pid for pid in self._processes() if pid not in outermost]

    def _is_too_much(self, held: int) -> bool:
        self._held = held
        return held >= self._limit and held > self._allowed

    def _is_time_to_walk(self, full: bool) -> bool:
        pause = 5 * self._walk_took
        if not full:
            pause = max(_REGULAR_WALK, pause) if self._masked else max(_IDLE_WALK, 4 * pause)
        return time.monotonic() >= self._walked_at + pause

    def _walk(self, hurry: Callable[[], bool]) -> "_Contents":
        began = time.monotonic()
        found = _Contents(hurry, self._enough)
        for directory in self._directories:
            found.add(directory)
        self._walked_at = time.monotonic()
        self._walk_took = self._walked_at - began if found.complete else 0.0
        found.forget_names()
        return found

    def _in_memory(self) -> int:
        return sum(_used(descriptor) for descriptor in self._temporary)

    def _free_space(self) -> "_FreeSpaces":
        """What each file system has left, by its device."""
        return {os.stat(directory).st_dev: _free(directory) for directory in self._directories}

    def _lost(self) -> int:
        """An upper bound on our share of the space that the file systems lost since the last walk."""
        now, last = self._free_space(), self._last_free
        # others hide what it takes
        self._masked |= any(now[key].space > last[key].space or now[key].files > last[key].files for key in now)
        self._last_free = now
        self._most_free = {key: _FreeSpace(*map(max, now[key], self._most_free[key])) for key in now}
        lost = [
            _FreeSpace(most.space - now[key].space, most.files - now[key].files)
            for key, most in self._most_free.items()
        ]
        return sum(part.space + part.files * _PER_FILE for part in lost)


@dataclass
class _WriteCount:
    """What the processes of a sandbox have written to disks. Those that ended between two looks, and whose parent did
    not wait for them, are missing."""

    since_walk: int = 0
    _last: int = 0

    def update(self, pids: Iterable[int]) -> None:
        now = bytes_written(pids)
        self.since_walk += max(0, now - self._last)
        self._last = now


@dataclass(frozen=True)
class _Certainty:
    """A moment at which nothing moved: what was free then, what was found, and what could not be found."""

    free: "_FreeSpaces"
    taken: int
    debt: int = 0

    def missing(self, free: "_FreeSpaces", taken: int) -> int:
        """Space that is gone by now and was not found."""
        lost = sum(self.free[key].space - free[key].space for key in free)
        return max(0, self.debt + lost - (taken - self.taken))


@dataclass
class _Contents:
    """What lies in trees. Looks no further when there is enough, or in a hurry."""

    hurry: Callable[[], bool]
    enough: float = math.inf
    held: int = 0
    """Size or space taken, whichever is larger, with something for each entry."""
    taken: int = 0
    largest: int = 0
    """The size of the largest file."""
    blind: bool = False
    """Part of a tree could not be seen."""
    complete: bool = True
    """Everything was looked at."""
    _seen: set[tuple[int, int]] = field(default_factory=set)

    def add(self, top: str) -> None:
        """A directory counts as well: names alone can make it large. A file with several names counts once."""
        todo = [top]
        with contextlib.suppress(OSError):
            self._add(os.stat(top))
        while todo and self.complete:
            try:
                with os.scandir(todo.pop()) as entries:
                    for number, entry in enumerate(entries):
                        if number % _BETWEEN_LOOKS == 0 and (self.held >= self.enough or self.hurry()):
                            self.complete = False
                            break
                        with contextlib.suppress(FileNotFoundError):
                            if entry.is_dir(follow_symlinks=False):
                                todo.append(entry.path)
                            self._add(entry.stat(follow_symlinks=False))
            except FileNotFoundError:
                continue
            except OSError:
                self.blind = True

    def _add(self, status: os.stat_result) -> None:
        if (status.st_dev, status.st_ino) not in self._seen:
            self._seen.add((status.st_dev, status.st_ino))
            self.count(status.st_size, status.st_blocks * 512)

    def forget_names(self) -> None:
        self._seen.clear()

    def count(self, size: int, taken: int) -> None:
        self.held += max(size, taken) + _PER_FILE
        self.taken += taken
        self.largest = max(self.largest, size)


def _deadline(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def most_bytes_in_a_file(limits: SandboxLimits, directories: Iterable[str]) -> int:
    """How large one file may become: what is there already in these directories may grow by the limit of disk space."""
    most = limits.file_size_mb << 20
    return most if limits.disk_mb >= limits.file_size_mb else min(most, (limits.disk_mb << 20) + _largest(directories))


def _largest(directories: Iterable[str]) -> int:
    contents = _Contents(lambda: False)
    for directory in directories:
        contents.add(directory)
    return contents.largest


class _FreeSpace(NamedTuple):
    """What a file system has left. Files without content fill it too."""

    space: int
    files: int


_FreeSpaces = dict[int, _FreeSpace]


def _free(directory: str) -> _FreeSpace:
    status = os.statvfs(directory)
    return _FreeSpace(status.f_bfree * status.f_frsize, status.f_ffree)


def _used(descriptor: int) -> int:
    status = os.fstatvfs(descriptor)
    return (status.f_blocks - status.f_bfree) * status.f_frsize + (status.f_files - status.f_ffree) * _PER_FILE
