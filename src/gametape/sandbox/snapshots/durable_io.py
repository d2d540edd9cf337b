"""Getting bytes onto the disk, and the clock by which the kernel stamps files."""

import ctypes
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_TMPFS, _RAMFS = 0x01021994, 0x858458F6
_WAIT_BEFORE, _WRITE = 1, 2
_CLOCK_REALTIME_COARSE = 5


def sync_filesystem(directory: Path) -> None:
    """Everything written so far to that filesystem is on disk when this returns."""
    with open_directory_fd(directory) as fd:
        if _libc.syncfs(fd) < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), os.fspath(directory))


def start_writeback(fd: int) -> None:
    """Begin to write a file's changed pages out. From then on a write through a memory map changes its ctime again."""
    _libc.sync_file_range(fd, ctypes.c_int64(0), ctypes.c_int64(0), _WAIT_BEFORE | _WRITE)


def ctime_tracks_every_change(directory: Path) -> bool:
    """Whether a file's ctime moves with every change. In memory filesystems, writes through a memory map escape it."""
    buffer = ctypes.create_string_buffer(512)
    if _libc.statfs(os.fsencode(directory), buffer) < 0:
        return False
    kind = ctypes.c_long.from_buffer(buffer).value & 0xFFFFFFFF
    return kind not in (_TMPFS, _RAMFS)


def coarse_clock_ns() -> int:
    """The clock by which the kernel stamps files, in nanoseconds. It moves every few milliseconds."""
    return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)


def await_next_clock_tick() -> None:
    """After this, a change to a file gets another ctime than any that it has now."""
    now = coarse_clock_ns()
    while coarse_clock_ns() == now:
        time.sleep(0.0005)


@contextmanager
def open_directory_fd(directory: Path) -> Iterator[int]:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def write_json(path: Path, value: Any) -> None:
    """Write a new file in a directory that no other process knows yet."""
    path.write_text(json.dumps(value, separators=(",", ":")), encoding="ascii")


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="ascii"))
