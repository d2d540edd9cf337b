"""Files that both sides of split mode have: what changed on one side, and the same change on the other.

A change is `(path, None)` for what is gone, `(path, mode)` for a directory and `(path, (content, mode))` for a regular
file. Links and special files are on nobody's list and are never followed: every directory on the way to a file is
opened by itself. Number and size are bounded.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from time import time_ns
from typing import Any, NamedTuple

MOST_CHANGES = 1000
MOST_CONTENT = 8 << 20
_MOST_ENTRIES = 20_000
_LONGEST_PATH, _LONGEST_NAME, _DEEPEST = 1000, 255, 40
_FRESH_NS = 100_000_000
"""A file that changed this shortly before a look may change again without another time stamp."""

Change = tuple[str, Any]
_open, _close, _scan, _fstat, _lstat = os.open, os.close, os.scandir, os.fstat, os.lstat
_read, _write, _mkdir, _unlink, _rmdir = os.read, os.write, os.mkdir, os.unlink, os.rmdir
# Bound here: a test may patch these names.


class TooManyFiles(OSError):
    """More files, or more content, than may cross at once."""


class _Entry(NamedTuple):
    stamp: tuple[int, ...]
    mode: int
    digest: bytes | None
    """Of the content; None for a directory and where it was not read."""
    is_fresh: bool


class FileRecord:
    """The files as the other side knows them."""

    def __init__(self) -> None:
        self._known: dict[str, _Entry] = {}

    def take_for_known(self, tops: Iterable[str]) -> None:
        """The other side has what is below these paths now, or does not need it."""
        for path, status in _walk(tops):
            self._known.setdefault(path, _entry(status, None, 0))

    def changes(
        self, tops: Iterable[str], wanted: Callable[[str, bool], bool], directories: Iterable[str] = ()
    ) -> list[Change]:
        """What changed at and below these paths since the other side was told, as far as it is wanted (by path, and
        whether it is a directory), and of these directories themselves. It counts as told."""
        tops, directories = list(tops), set(directories)
        now = time_ns()
        found: dict[str, os.stat_result] = {}
        changed: list[Change] = []
        room = MOST_CONTENT
        for path, status in (*_directories(directories), *_walk(tops)):
            found[path] = status
            known = self._known.get(path)
            if known is not None and not known.is_fresh and known.stamp == _stamp(status):
                continue
            if known is None and not wanted(path, stat.S_ISDIR(status.st_mode)):
                continue
            try:
                content = None if stat.S_ISDIR(status.st_mode) else _content(path, room)
            except TooManyFiles:
                raise
            except OSError:
                continue  # it may not be read, or is gone
            entry = _entry(status, content, now)
            self._known[path] = entry
            if known is not None and (known.mode, known.digest) == (entry.mode, entry.digest):
                continue
            room -= len(content or b"")
            changed.append((path, entry.mode if content is None else (content, entry.mode)))
        gone = [path for path in self._known if path not in found and (path in directories or _is_below(path, tops))]
        for path in gone:
            del self._known[path]
        if len(gone) + len(changed) > MOST_CHANGES:
            raise TooManyFiles(f"split mode: more than {MOST_CHANGES} files changed at once")
        removals: list[Change] = [(path, None) for path in sorted(gone, reverse=True)]
        return removals + sorted(changed, key=lambda change: change[0])

    def knows(self, path: str) -> bool:
        return path in self._known

    def apply(self, change: Change, roots: Iterable[str]) -> None:
        """Make a change of the other side here. Raises OSError where that cannot be done, ValueError for what is no
        change below the roots."""
        path, content = change
        root, names = split_path(path, roots)
        directory = _open_directory(root, names[:-1], create=content is not None)
        try:
            if content is None:
                _remove(names[-1], directory)
            elif type(content) is int:
                _make_directory(names[-1], directory, content)
            else:
                _write_file(names[-1], directory, *content)
        finally:
            _close(directory)
        self.note(path)

    def note(self, path: str) -> None:
        """The other side knows this path as it is now."""
        try:
            status = _lstat(path)
            is_file = stat.S_ISREG(status.st_mode)
            self._known[path] = _entry(status, _content(path, MOST_CONTENT) if is_file else None, time_ns())
        except OSError:
            self._known.pop(path, None)


def split_path(path: Any, roots: Iterable[str]) -> tuple[str, list[str]]:
    """The root and the names below it. Raises ValueError for anything but a plain path below a root."""
    if type(path) is not str or len(path) > _LONGEST_PATH or "\0" in path:
        raise ValueError("a file without a path")
    root = next((root for root in roots if path.startswith(f"{root}/")), None)
    if root is None:
        raise ValueError("a file outside of the scratch directories")
    names = path[len(root) + 1 :].split("/")
    if len(names) > _DEEPEST or any(
        name in ("", ".", "..") or len(name.encode("utf-8")) > _LONGEST_NAME for name in names
    ):
        raise ValueError("a file whose path is not plain")
    return root, names


def check_changes(changes: Any) -> list[Change]:
    """A list of changes that the other side sent. Raises ValueError for anything else."""
    if type(changes) is not list or len(changes) > MOST_CHANGES:
        raise ValueError("changes of files that are none")
    size = 0
    for change in changes:
        if type(change) is not tuple or len(change) != 2 or type(change[0]) is not str:
            raise ValueError("changes of files that are none")
        content = change[1]
        if content is None or type(content) is int:
            continue
        if type(content) is not tuple or len(content) != 2 or tuple(map(type, content)) != (bytes, int):
            raise ValueError("changes of files that are none")
        size += len(content[0])
    if size > MOST_CONTENT:
        raise ValueError("files that are too large")
    return changes


def _walk(tops: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    """The regular files and directories at and below these paths, mounts excepted."""
    waiting: list[tuple[str, int | None]] = [(top, None) for top in tops]
    count = 0
    seen = set()
    while waiting:
        path, device = waiting.pop()
        try:
            status = _lstat(path)
            if path in seen or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                continue
            if device not in (None, status.st_dev):
                continue
            seen.add(path)
            count += 1
            if count > _MOST_ENTRIES:
                raise TooManyFiles(f"split mode: more than {_MOST_ENTRIES} files")
            if stat.S_ISDIR(status.st_mode):
                with _scan(path) as entries:
                    waiting += [(entry.path, status.st_dev) for entry in entries if not entry.is_symlink()]
        except TooManyFiles:
            raise
        except OSError:
            continue
        yield path, status


def _directories(paths: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    for path in paths:
        try:
            status = _lstat(path)
        except OSError:
            continue
        if stat.S_ISDIR(status.st_mode):
            yield path, status


def _is_below(path: str, tops: list[str]) -> bool:
    return any(path == top or path.startswith(f"{top}/") for top in tops)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    if stat.S_ISDIR(status.st_mode):
        return status.st_ino, status.st_mode
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _entry(status: os.stat_result, content: bytes | None, now: int) -> _Entry:
    digest = None if content is None else hashlib.blake2b(content, digest_size=16).digest()
    is_fresh = digest is not None and now - status.st_ctime_ns < _FRESH_NS
    return _Entry(_stamp(status), stat.S_IMODE(status.st_mode) & 0o777, digest, is_fresh)


def _content(path: str, room: int) -> bytes:
    descriptor = _open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(_fstat(descriptor).st_mode):
            raise OSError(f"{path}: not a regular file")
        parts = bytearray()
        while data := _read(descriptor, 1 << 20):
            parts += data
            if len(parts) > room:
                raise TooManyFiles(f"split mode: more than {MOST_CONTENT >> 20} MiB of files changed at once")
        return bytes(parts)
    finally:
        _close(descriptor)


def _open_directory(root: str, names: list[str], create: bool) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    directory = _open(root, flags)
    for name in names:
        try:
            try:
                inner = _open(name, flags, dir_fd=directory)
            except FileNotFoundError:
                if not create:
                    raise
                _mkdir(name, 0o755, dir_fd=directory)
                inner = _open(name, flags, dir_fd=directory)
        finally:
            _close(directory)
        directory = inner
    return directory


def _remove(name: str, directory: int) -> None:
    try:
        _unlink(name, dir_fd=directory)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        _rmdir(name, dir_fd=directory)


def _make_directory(name: str, directory: int, mode: int) -> None:
    try:
        _mkdir(name, mode & 0o777, dir_fd=directory)
    except FileExistsError:
        inner = _open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            os.fchmod(inner, mode & 0o777)
        finally:
            _close(inner)


def _write_file(name: str, directory: int, content: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = _open(name, flags, 0o600, dir_fd=directory)
    except PermissionError:
        _unlink(name, dir_fd=directory)
        descriptor = _open(name, flags, 0o600, dir_fd=directory)
    try:
        status = _fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise OSError(f"{name}: not a plain file")
        os.ftruncate(descriptor, 0)
        view = memoryview(content)
        while view:
            view = view[_write(descriptor, view) :]
        os.fchmod(descriptor, mode & 0o777)
    finally:
        _close(descriptor)
