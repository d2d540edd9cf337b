"""Small changes to a directory tree, and what a tree looks like: used on a view and on a plain directory alike.

Standard library only: workers run this as other users, with nothing installed.
"""

import errno
import hashlib
import os
import shutil
import stat
from typing import Any

_BEFORE_NOW = 1_600_000_000_000_000_000


def apply(root: str, change: list[Any]) -> str:
    """Make one change below `root`; returns the name of the error, or nothing."""
    kind, *arguments = change
    try:
        _CHANGES[kind](root, *arguments)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return ""


def describe(root: str) -> dict[str, Any]:
    """Everything that two equal trees have in common. Times are kept where they were set on purpose."""
    found: dict[str, Any] = {}
    names: dict[tuple[int, int], list[str]] = {}
    for directory, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(directory, name)
            status = os.lstat(path)
            inner = os.path.relpath(path, root)
            found[inner] = _entry(path, status)
            if stat.S_ISREG(status.st_mode):
                names.setdefault((status.st_dev, status.st_ino), []).append(inner)
    found["."] = _entry(root, os.lstat(root))
    found["\0links"] = sorted(sorted(group) for group in names.values() if len(group) > 1)
    return found


def _entry(path: str, status: os.stat_result) -> list[Any]:
    changed = status.st_mtime_ns if status.st_mtime_ns < _BEFORE_NOW else "lately"
    if stat.S_ISLNK(status.st_mode):
        return ["link", os.readlink(path), changed]
    attributes = {name: os.getxattr(path, name).hex() for name in sorted(os.listxattr(path)) if name[:5] == "user."}
    shape = [stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode), changed, attributes]
    if stat.S_ISREG(status.st_mode):
        mode = stat.S_IMODE(status.st_mode)
        if mode & 0o400 == 0 and os.geteuid() != 0:
            os.chmod(path, mode | 0o400)
        with open(path, "rb") as file:
            shape += [status.st_size, hashlib.sha256(file.read()).hexdigest()]
        if os.stat(path).st_mode != status.st_mode:
            os.chmod(path, mode)
    return shape


def _write(root: str, path: str, text: str, flags: int) -> None:
    fd = os.open(os.path.join(root, path), os.O_WRONLY | flags | os.O_NOFOLLOW, 0o644)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _truncate(root: str, path: str, size: int) -> None:
    fd = os.open(os.path.join(root, path), os.O_WRONLY | os.O_NOFOLLOW)
    try:
        os.ftruncate(fd, size)
    finally:
        os.close(fd)


def _chmod(root: str, path: str, mode: int) -> None:
    place = os.path.join(root, path)
    status = os.lstat(place)
    if not stat.S_ISLNK(status.st_mode):
        os.chmod(place, mode | (0o700 if stat.S_ISDIR(status.st_mode) else 0))


def _set_attribute(root: str, path: str, value: str) -> None:
    place = os.path.join(root, path)
    if not os.path.islink(place):
        os.setxattr(place, "user.test", value.encode())


def _replace(root: str, path: str) -> None:
    """An empty directory in the place of a full one."""
    place = os.path.join(root, path)
    if os.path.isdir(place) and not os.path.islink(place):
        shutil.rmtree(place)
    os.mkdir(place)


def move_by_copy(root: str, old: str, new: str) -> None:
    """What `mv` does where a directory cannot be renamed."""
    source, target = os.path.join(root, old), os.path.join(root, new)
    if os.path.isdir(target):
        os.rmdir(target)
    shutil.copytree(source, target, symlinks=True)
    shutil.rmtree(source)


_CHANGES = {
    "write": lambda root, path, text: _write(root, path, text, os.O_CREAT | os.O_TRUNC),
    "append": lambda root, path, text: _write(root, path, text, os.O_APPEND),
    "truncate": _truncate,
    "unlink": lambda root, path: os.unlink(os.path.join(root, path)),
    "rename": lambda root, old, new: os.rename(os.path.join(root, old), os.path.join(root, new)),
    "move by copy": move_by_copy,
    "replace": _replace,
    "chmod": _chmod,
    "mkdir": lambda root, path: os.mkdir(os.path.join(root, path)),
    "rmdir": lambda root, path: os.rmdir(os.path.join(root, path)),
    "symlink": lambda root, path, target: os.symlink(target, os.path.join(root, path)),
    "link": lambda root, old, new: os.link(os.path.join(root, old), os.path.join(root, new), follow_symlinks=False),
    "utime": lambda root, path, at: os.utime(os.path.join(root, path), ns=(at, at), follow_symlinks=False),
    "setxattr": _set_attribute,
}
