"""Files of a workspace, from outside, while hostile code may still be swapping links under our feet.

Every step is taken from an open directory and none follows a link, so no path can lead out of the workspace.
"""

import contextlib
import errno
import os
import secrets
import stat

from gametape.core.errors import BadInput

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_REFUSED = (
    errno.ELOOP,
    errno.ENOTDIR,
    errno.ENOENT,
    errno.EISDIR,
    errno.ENXIO,
    errno.EACCES,
    errno.ENAMETOOLONG,
)


def read(workspace: str, path: str, most: int = 1 << 26) -> bytes:
    """A regular file's content, up to `most` bytes."""
    with _parent(workspace, path, make=False) as (directory, name):
        descriptor = _open(name, os.O_RDONLY | os.O_NONBLOCK, directory, path)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise BadInput(f"{path} in the workspace is not a regular file")
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(most + 1)
        finally:
            os.close(descriptor)
    if len(content) > most:
        raise BadInput(f"{path} in the workspace is larger than {most} bytes")
    return content


def write(workspace: str, path: str, content: bytes) -> None:
    """Replace a file atomically, making the directories on the way."""
    with _parent(workspace, path, make=True) as (directory, name):
        temporary = f".{secrets.token_hex(16)}.new"  # a name that cannot be planted beforehand
        descriptor = _open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, directory, path)
        try:
            _like_parent(descriptor, directory)
            with open(descriptor, "wb") as file:
                file.write(content)
            os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=directory)
            raise


@contextlib.contextmanager
def _parent(workspace: str, path: str, make: bool):  # type: ignore[no-untyped-def]
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or "\0" in path or path.startswith("/"):
        raise BadInput(f"{path!r} is not a path inside the workspace")
    directory = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            made = make and _make(part, directory)
            inner = _open(part, _DIRECTORY, directory, path)
            if made:
                _like_parent(inner, directory)
            os.close(directory)
            directory = inner
        yield directory, parts[-1]
    finally:
        os.close(directory)


def _make(name: str, directory: int) -> bool:
    try:
        os.mkdir(name, dir_fd=directory)
    except FileExistsError:
        return False
    return True


def _like_parent(descriptor: int, directory: int) -> None:
    """What root makes in a workspace belongs to the workspace's owner."""
    if os.geteuid() == 0:
        owner = os.fstat(directory)
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def _open(name: str, flags: int, directory: int, path: str) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=directory)
    except OSError as error:
        if error.errno in _REFUSED:
            raise BadInput(f"{path} in the workspace: {error.strerror}") from error
        raise
