"""Removing what is not needed: trees of any shape, views whose owner died, layers that no snapshot names."""

import errno
import fcntl
import os
import stat
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gametape.record.lock import is_locked, locked
from gametape.sandbox.snapshots.store_layout import StorePaths, layers_in_use
from gametape.sandbox.snapshots.tree_cursor import TreeCursor, TreeMoved

_GET_FLAGS, _SET_FLAGS, _PROTECTED = 0x80086601, 0x40086602, 0x30  # append-only and immutable


def remove_tree(path: Path) -> int:
    """Remove a directory whatever is in it, unless another process removes it. Returns the bytes that this freed.

    If a process still writes there, the rest stays for the next call.
    """
    try:
        fd = _open_for_removal(path)
    except FileNotFoundError:
        return 0
    claim = os.dup(fd)
    try:
        cursor = TreeCursor(fd, need=0o700, restore=False)
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            freed = _remove_entries(cursor)
        except (BlockingIOError, TreeMoved):
            return 0
        finally:
            cursor.close()
        _remove_directory(os.fspath(path), None)
        return freed
    finally:
        os.close(claim)


def _open_for_removal(path: Path) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except PermissionError:
        path.chmod(0o700)
        return os.open(path, flags)


def _remove_entries(cursor: TreeCursor) -> int:
    freed = 0
    levels = [os.listdir(cursor.fd)]
    path: list[str] = []
    while levels:
        if levels[-1]:
            name = levels[-1].pop()
            if cursor.enter(name):
                levels.append(os.listdir(cursor.fd))
                path.append(name)
            else:
                cursor.leave()
                freed += _unlink(name, cursor.fd)
            continue
        levels.pop()
        if path:
            cursor.leave()
            freed += _remove_directory(path.pop(), cursor.fd)
    return freed


def collect_garbage(paths: StorePaths) -> None:
    """Clean up after every process that is gone. Safe at any time and from any process."""
    with locked(paths.lock):
        alive = {owner.name for owner in paths.owners.iterdir() if is_locked(owner)}
        for building in paths.building.iterdir():
            if building.name.partition(".")[0] not in alive:
                paths.move_to_trash(building)
        used = layers_in_use(paths, alive)
        for view in paths.views.iterdir():
            if view.name.partition(".")[0] not in alive:
                paths.move_to_trash(view)
        for layer in paths.layers.iterdir():
            if layer.name not in used:
                paths.move_to_trash(layer)
        for owner in list(paths.owners.iterdir()):
            if owner.name not in alive:
                owner.unlink(missing_ok=True)
    empty_trash(paths)


def empty_trash(paths: StorePaths) -> None:
    """Remove what can no longer be reached; several processes may do so at once."""
    for entry in list(paths.trash.iterdir()):
        freed = remove_tree(entry)
        if freed and entry.name.startswith(f"{paths.layers.name}."):
            with locked(paths.lock):
                paths.add_used(-freed)


def measure_layers(paths: StorePaths) -> int:
    """The bytes that the layers really take, each file counted once however many layers share it."""
    total, shared = 0, set[int]()
    for layer in paths.layers.iterdir():
        with suppress(FileNotFoundError):
            total += _measure_tree(layer / "tree", shared)
    return total


def _measure_tree(tree: Path, shared: set[int]) -> int:
    cursor = TreeCursor(os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))
    total = 0
    try:
        names = [os.listdir(cursor.fd)]
        while names:
            if not names[-1]:
                names.pop()
                if names:
                    cursor.leave()
                continue
            name = names[-1].pop()
            status = os.stat(name, dir_fd=cursor.fd, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                total += size_of(status)
                if cursor.enter(name):
                    names.append(os.listdir(cursor.fd))
                else:
                    cursor.leave()
            elif status.st_nlink == 1 or status.st_ino not in shared:
                total += size_of(status)
                if status.st_nlink > 1:
                    shared.add(status.st_ino)
    finally:
        cursor.close()
    return total


def size_of(status: os.stat_result) -> int:
    """What one entry is charged: its blocks, and something for its name. Directories count as a name."""
    return 256 + (status.st_blocks * 512 if stat.S_ISREG(status.st_mode) else 0)


def _unlink(name: str, directory: int) -> int:
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        try:
            os.unlink(name, dir_fd=directory)
        except PermissionError:
            _unprotect(name, directory)
            os.unlink(name, dir_fd=directory)
    except (FileNotFoundError, IsADirectoryError):
        return 0
    return size_of(status) if status.st_nlink == 1 else 0


def _remove_directory(name: str, directory: int | None) -> int:
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        try:
            os.rmdir(name, dir_fd=directory)
        except PermissionError:
            if directory is not None:
                _unprotect(name, directory)
            os.rmdir(name, dir_fd=directory)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.ENOTDIR):
            raise
        return 0
    return size_of(status)


def _unprotect(name: str, directory: int) -> None:
    """Lift the flags that stop even root from removing a file, or anything in a directory."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    for descriptor in (os.dup(directory), os.open(name, flags, dir_fd=directory)):
        try:
            (flags_now,) = struct.unpack("=i", fcntl.ioctl(descriptor, _GET_FLAGS, b"\0" * 8)[:4])
            fcntl.ioctl(descriptor, _SET_FLAGS, struct.pack("=q", flags_now & ~_PROTECTED))
        finally:
            os.close(descriptor)


@contextmanager
def scratch_directory(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """An empty directory for the block, removed after it whatever is in it then."""
    path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        yield path
    finally:
        remove_tree(path)
