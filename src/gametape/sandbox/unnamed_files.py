"""Files without a name that processes keep from being freed: open, mapped, running, worked in, or on their way in a
socket. A directory or a link without a name takes space as well: an emptied directory keeps the blocks of its names."""

import contextlib
import os
import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from gametape.sandbox import linux


@dataclass
class UnnamedFiles:
    """What was found of them. They count like files with a name."""

    ignored: Collection[int]
    """Devices that do not count."""
    sizes: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """Apparent size and space taken, by device and inode."""
    hidden: bool = False
    """There may be more: descriptors in flight, or what we may not look at."""

    def search(self, pids: Iterable[int], trusted: Collection[int] = ()) -> None:
        """Look at these processes; trusted ones may be closed to us and hold nothing."""
        for pid in pids:
            tasks = _listed(f"/proc/{pid}/task")
            self.hidden |= pid not in trusted and _is_closed(f"/proc/{pid}/fd")
            for task in tasks:
                if task == str(pid) or not linux.shares_descriptors(pid, int(task)):
                    self._add_open(f"/proc/{pid}/task/{task}")
                if directory := _status(f"/proc/{pid}/task/{task}/cwd"):
                    self._add(directory)
            for task in tasks:  # the first one that still has memory: all share it
                if self._add_mapped(f"/proc/{pid}/task/{task}", f"/proc/{pid}/map_files"):
                    break

    def _add_open(self, process: str) -> None:
        for name in _listed(f"{process}/fd"):
            status = _status(f"{process}/fd/{name}")
            if status is None:
                continue
            self._add(status)
            if stat.S_ISSOCK(status.st_mode) and not self.hidden:
                self.hidden = _has_descriptors_in_flight(f"{process}/fdinfo/{name}")

    def _add_mapped(self, process: str, map_files: str) -> bool:
        with contextlib.suppress(OSError), open(f"{process}/maps", "rb") as file:
            lines = file.read().splitlines()
            if lines and (program := _status(f"{process}/exe")):
                self._add(program)
            for line in lines:
                if line.endswith(b" (deleted)"):
                    first, _, last = line.split(b" ", 1)[0].decode().partition("-")
                    self._add_mapping(f"{map_files}/{int(first, 16):x}-{int(last, 16):x}", line)
            return bool(lines)
        return False

    def _add_mapping(self, path: str, line: bytes) -> None:
        try:
            self._add(os.stat(path))
        except FileNotFoundError:
            pass
        except OSError:  # an ordinary user may not follow it, but knows its number
            device, inode = line.split()[3:5]
            major, minor = (int(part, 16) for part in device.split(b":"))
            key = os.makedev(major, minor), int(inode)
            self.hidden |= key not in self.sizes and key[0] not in self.ignored

    def _add(self, status: os.stat_result) -> None:
        if status.st_nlink == 0 and status.st_dev not in self.ignored:
            self.sizes[status.st_dev, status.st_ino] = status.st_size, status.st_blocks * 512


def memory_device() -> int:
    """The device of files in memory, which are no disk space."""
    descriptor = os.memfd_create("gametape")
    try:
        return os.fstat(descriptor).st_dev
    finally:
        os.close(descriptor)


def _has_descriptors_in_flight(path: str) -> bool:
    """Whether a socket holds descriptors that were sent and not received; what those are is nowhere to be seen."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        for line in file:
            name, _, value = line.partition(b":")
            if name == b"scm_fds":
                return int(value) > 0
    return False


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _is_closed(directory: str) -> bool:
    try:
        os.scandir(directory).close()
    except OSError as error:
        return isinstance(error, PermissionError)
    return False


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
