"""Writing a file atomically: whatever happens, it has either the old content or the whole new content."""

import os
import secrets
from pathlib import Path

from gametape.record.errors import write_error


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` with `data`. When this returns the content and the name are on disk."""
    try:
        fd, temporary = create_temporary(path)
        try:
            try:
                write_all(fd, data)
                os.fsync(fd)
            finally:
                os.close(fd)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)
    except OSError as error:
        raise write_error(path, error) from None


def create_temporary(path: Path) -> tuple[int, Path]:
    """A new file in the same directory, open for appending, with the permissions any new file gets."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    return os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o666), temporary


def write_all(fd: int, data: bytes) -> None:
    """Write every byte; a nearly full disk takes only some of them at first."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def sync_directory(directory: Path) -> None:
    """Put a directory's names on disk: a renamed file is only safe once its name is."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
