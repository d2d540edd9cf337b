"""Files in the sandbox's /workspace: written before hostile code runs, and restored after each of its processes.

Nothing that a process leaves behind may keep the next one from finding its files: trees of any depth, directories
without permissions, missing directories.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

WORKSPACE = "/workspace"
SCRATCH = ("/tmp", "/dev/shm")
_HOME = "/tmp/home"
_MOST_ENTRIES, _LONGEST_PATH = 100_000, 2000
Content = bytes | memoryview
Stamp = tuple[int, int, int]
"""Inode, size and time of the last change, which only the kernel sets, of a file or directory."""


class WorkspaceFiles:
    """The files that every process of a job finds, kept in memory so that they can be written again."""

    def __init__(self, listing: Iterable[tuple[str, int, bool]], content: Content) -> None:
        self._files: dict[str, tuple[Content, bool]] = dict(_contents(listing, content))
        self._write_all(self._files)
        self._original: dict[str, Stamp] | None = file_stamps()
        self._stamps = self._original

    def change(self, listing: Iterable[tuple[str, int, bool]], content: Content, removed: Iterable[str]) -> None:
        """Add or replace these files, and remove others. Nothing but a `restore` may lie between two changes."""
        changed = dict(_contents(listing, content))
        gone = [path for path in removed if self._files.pop(path, None)]
        modes = [
            path
            for path, (_, executable) in changed.items()
            if self._files.get(path, (b"", executable))[1] != executable
        ]
        self._files |= changed
        if gone or modes:
            clear_directory(WORKSPACE)
            changed = self._files
        self._write_all(changed)
        self._original = self._stamps = file_stamps()

    def record_state(self) -> None:
        """Record the files as they are now, for `restore`."""
        self._stamps = file_stamps()

    def restore(self) -> list[str]:
        """Put everything back to its first state; returns the files that changed since `record_state`."""
        now = file_stamps()
        changed = self._changed_files(now)
        if not self._rewrite_changed(now):
            _quietly(os.chmod, WORKSPACE, 0o755)
            clear_directory(WORKSPACE)
            self._write_all(self._files)
            self._original = file_stamps()
        self._stamps = self._original
        return changed

    def _changed_files(self, now: dict[str, Stamp] | None) -> list[str]:
        """Where there is too much to look at, the job's own files are."""
        known = self._stamps or self._original or {}
        if now is None or self._stamps is None:
            known = {path: stamp for path, stamp in known.items() if path in self._files}
            now = {path: stamp for path in known if (stamp := _stamp_at(path))}
        return sorted(
            path
            for path in known
            if now.get(path) != known[path] and (path in self._files or not os.path.isdir(_at(path)))
        )

    def _rewrite_changed(self, now: dict[str, Stamp] | None) -> bool:
        """Rewrite changed files, if nothing else changed: no directory, no name, no attribute. Else return False."""
        if now is None or self._original is None or now.keys() != self._original.keys() or _attributes(WORKSPACE):
            return False
        differs = [path for path in now if now[path] != self._original[path]]
        if any(path not in self._files or now[path][0] != self._original[path][0] for path in differs):
            return False
        for path in differs:
            if os.stat(_at(path)).st_nlink != 1 or _attributes(_at(path)):
                return False
            content, executable = self._files[path]
            os.chmod(_at(path), 0o644)
            write(path, content)
            os.chmod(_at(path), 0o755 if executable else 0o644)
            self._original[path] = _stamp(os.stat(_at(path)))
        return True

    @staticmethod
    def _write_all(files: Mapping[str, tuple[Content, bool]]) -> None:
        for path, (content, executable) in files.items():
            write(path, content)
            if executable:
                os.chmod(_at(path), 0o755)


def _contents(listing: Iterable[tuple[str, int, bool]], content: Content) -> Iterator[tuple[str, tuple[Content, bool]]]:
    at = 0
    for path, size, executable in listing:
        yield path, (content[at : at + size], executable)
        at += size


def file_stamps() -> dict[str, Stamp] | None:
    """The stamps of everything below the workspace, links as themselves; None if there are too many entries."""
    stamps: dict[str, Stamp] = {}
    waiting = [""]
    while waiting:
        directory = waiting.pop()
        stamps[directory] = _stamp(os.stat(_at(directory)))
        if len(stamps) > _MOST_ENTRIES or len(directory) > _LONGEST_PATH:
            return None
        if not os.access(_at(directory), os.R_OK | os.X_OK):
            continue  # its permissions were removed, which its own stamp shows
        for entry in os.scandir(_at(directory)):
            path = os.path.join(directory, entry.name)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            else:
                stamps[path] = _stamp(entry.stat(follow_symlinks=False))
    return stamps


def _stamp_at(path: str) -> Stamp | None:
    try:
        return _stamp(os.lstat(_at(path)))
    except OSError:
        return None


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_ctime_ns


def _at(path: str) -> str:
    return os.path.join(WORKSPACE, path)


def in_workspace(path: str) -> str:
    """The absolute, normal form of a path of the task."""
    return os.path.normpath(_at(path))


def write(path: str, content: Content) -> None:
    """Write a file without a buffer: nothing of it stays in this process."""
    missing, directory = [], os.path.dirname(_at(path))
    while not os.path.isdir(directory):  # `os.makedirs` calls itself for every level
        missing.append(directory)
        directory = os.path.dirname(directory)
    for name in reversed(missing):
        os.mkdir(name)
    with open(_at(path), "wb", buffering=0) as file:
        waiting = memoryview(content)
        while waiting:
            waiting = waiting[file.write(waiting) :]


def kill_other_processes() -> None:
    """Kill every process of the sandbox except the first one and this one, and wait until they are gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def clear_scratch() -> None:
    """Empty the scratch directories, so that a process leaves nothing there for the next one."""
    for directory in SCRATCH:
        clear_directory(directory)
    _quietly(os.mkdir, _HOME)


def clear_directory(top: str) -> None:
    """Empty a directory of everything except mounts.

    Directories are moved to the top before they are emptied, so that no path gets too long or too deep: into one whose
    name no process can know, or it would be left as it is where somebody has made it before.
    """
    trash = os.path.join(top, os.urandom(16).hex())
    waiting = [top]
    moved = 0
    while waiting:
        directory = waiting.pop()
        _quietly(os.chmod, directory, 0o700 if directory != top else 0o755)
        for name in _attributes(directory) if directory == top else ():
            _quietly(os.removexattr, directory, name)
        for entry in _entries(directory):
            if not entry.is_dir(follow_symlinks=False):
                _quietly(os.unlink, entry.path)
            elif _leads_to_a_mount(entry.path):
                waiting += [entry.path] if entry.path not in _MOUNTS else []
            elif entry.path != trash:
                _quietly(os.mkdir, trash)
                moved += 1
                target = os.path.join(trash, str(moved))
                _quietly(os.chmod, entry.path, 0o700)
                _quietly(os.rename, entry.path, target)
                waiting.append(target if os.path.isdir(target) else entry.path)
        if directory != top:
            _quietly(os.rmdir, directory)
    _quietly(os.rmdir, trash)


def _mounts() -> frozenset[str]:
    """The mount points, which no process of the sandbox can change."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        return frozenset(line.split()[4] for line in file)


_MOUNTS = _mounts()


def _leads_to_a_mount(path: str) -> bool:
    """Whether a mount is there or below: moving the directory would move the mount."""
    return any(mount == path or mount.startswith(f"{path}/") for mount in _MOUNTS)


def _attributes(directory: str) -> list[str]:
    try:
        return os.listxattr(directory)
    except OSError:
        return []


def _entries(directory: str) -> list["os.DirEntry[str]"]:
    try:
        return [*os.scandir(directory)]
    except OSError:
        return []


def _quietly(act: Callable[..., None], *arguments: Any) -> None:
    """Ignore an OSError: what cannot be changed, such as a mount, may stay."""
    with contextlib.suppress(OSError):
        act(*arguments)
