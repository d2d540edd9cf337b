"""Reading and writing a workspace from outside, while hostile code may still replace directories by links.

Every step starts from an open directory and none follows a link, so no path can lead out of the workspace.
"""

import contextlib
import errno
import os
import secrets
import stat

from gametape.core.errors import BadInput
from gametape.sandbox import linux

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


def read_file(workspace: str, path: str, most: int = 1 << 26) -> bytes:
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


def write_file(workspace: str, path: str, content: bytes) -> None:
    """Replace a file atomically, making the directories on the way. A file that was there keeps its mode."""
    owner = os.stat(workspace)
    with linux.as_owner(owner.st_uid, owner.st_gid), _parent(workspace, path, make=True) as (directory, name):
        temporary = f".{secrets.token_hex(16)}.new"  # a name that cannot be planted beforehand
        descriptor = _open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, directory, path)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
                if (mode := _mode(name, directory)) is not None:
                    os.fchmod(file.fileno(), mode)
            os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException as error:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=directory)
            if isinstance(error, OSError) and error.errno in _REFUSED:
                raise BadInput(f"{path} in the workspace: {error.strerror}") from error
            raise


@contextlib.contextmanager
def _parent(workspace: str, path: str, make: bool):  # type: ignore[no-untyped-def]
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or "\0" in path or path.startswith("/"):
        raise BadInput(f"{path!r} is not a path inside the workspace")
    directory = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=directory)
            inner = _open(part, _DIRECTORY, directory, path)
            os.close(directory)
            directory = inner
        yield directory, parts[-1]
    finally:
        os.close(directory)


def _mode(name: str, directory: int) -> int | None:
    """What a regular file permits; never more than reading, writing and running it."""
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    return mode & 0o777 if stat.S_ISREG(mode) else None


def _open(name: str, flags: int, directory: int, path: str) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=directory)
    except OSError as error:
        if error.errno in _REFUSED:
            raise BadInput(f"{path} in the workspace: {error.strerror}") from error
        raise
