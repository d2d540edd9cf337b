"""The one append-only log: a file of lines with a single writer, which continues after its last whole line.

A line counts once its newline is written. `AppendLog` writes bytes, for the journal, and JSON objects, for everybody
else; `read_records` gives back what `append` wrote.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from gametape.core.errors import BadInput
from gametape.record.atomic import create_temporary, sync_directory, write_all
from gametape.record.errors import printable_path, read_error, write_error
from gametape.record.lock import require_lock

Record = dict[str, Any]


class AppendLog:
    """The locked writer of one file. With `durable`, what was appended is on disk when the call returns; without, it
    survives the end of the process but perhaps not of the machine."""

    def __init__(self, path: Path, fd: int, size: int, *, durable: bool = True) -> None:
        self.path = path
        self._fd = fd
        self._size = size
        self._durable = durable

    @classmethod
    def create(cls, path: Path, data: bytes) -> Self:
        """A new file that appears locked and with all of `data`, or not at all. OSError if that cannot be."""
        fd, temporary = create_temporary(path)
        try:
            require_lock(fd, path)
            write_all(fd, data)
            os.fsync(fd)
            os.link(temporary, path)
            sync_directory(path.parent)
        except BaseException:
            os.close(fd)
            raise
        finally:
            temporary.unlink()
        return cls(path, fd, len(data))

    @classmethod
    def open(cls, path: Path, *, durable: bool = True, busy: str = "another process is writing it") -> Self:
        """Continue a file, or begin it if it is not there. `BadInput` says who is `busy` with one that is locked."""
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise write_error(path, error) from None
        return cls._locked(path, fd, busy, durable=durable)

    @classmethod
    def open_existing(cls, path: Path) -> Self:
        """Continue a file that is there."""
        try:
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise read_error(path, error) from None
        return cls._locked(path, fd, "another process is writing it", durable=True)

    @classmethod
    def _locked(cls, path: Path, fd: int, busy: str, *, durable: bool) -> Self:
        try:
            require_lock(fd, path, busy)
            if not _is_file_at(fd, path):
                raise BadInput(f"{printable_path(path)}: was closed by another process")
            return cls(path, fd, os.fstat(fd).st_size, durable=durable)
        except BaseException:
            os.close(fd)
            raise

    def read_records(self) -> list[Record]:
        """Every whole line as the JSON object that it is. An unfinished line at the end is cut off."""
        with open(self._fd, "rb", closefd=False) as file:
            file.seek(0)
            data = file.read()
        self.truncate(data.rfind(b"\n") + 1)
        return [*self._parsed(data[: self._size].splitlines())]

    def _parsed(self, lines: list[bytes]) -> Iterator[Record]:
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
            except ValueError as error:
                raise BadInput(f"{printable_path(self.path)}: line {number}: not JSON ({error})") from None
            if not isinstance(record, dict):
                raise BadInput(f"{printable_path(self.path)}: line {number}: expected a JSON object")
            yield record

    def require_header(self, begun: Record, header: Record) -> None:
        """Refuse to continue a log whose first record, `begun`, differs from the `header` that it would get now."""
        wanted = json.loads(json.dumps(header))
        if begun != wanted:
            names = [name for name in {**wanted, **begun} if begun.get(name) != wanted.get(name)]
            difference = ", ".join(f"{name} {begun.get(name)!r}, not {wanted.get(name)!r}" for name in names)
            raise BadInput(f"{printable_path(self.path)}: begun with {difference}; that cannot be resumed")

    def append(self, *records: Record) -> None:
        """Add a line for each record, or, if this raises, none."""
        try:
            self.append_bytes(b"".join(json.dumps(record).encode() + b"\n" for record in records))
        except OSError as error:
            raise write_error(self.path, error) from None

    def append_bytes(self, data: bytes) -> None:
        """Add whole lines, or, if this raises OSError, nothing of them."""
        try:
            if os.fstat(self._fd).st_size != self._size:
                os.ftruncate(self._fd, self._size)
            write_all(self._fd, data)
            if self._durable:
                os.fsync(self._fd)
        except BaseException:
            self._drop_unfinished()
            raise
        self._size += len(data)

    def _drop_unfinished(self) -> None:
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            return  # an unfinished line is ignored when read, and the next append tries again

    def truncate(self, size: int = 0) -> None:
        """Keep at most the first `size` bytes; they are on disk when this returns."""
        size = min(size, self._size)
        try:
            os.ftruncate(self._fd, size)
            os.fsync(self._fd)
        except OSError as error:
            raise write_error(self.path, error) from None
        self._size = size

    def sync(self) -> int:
        """Put everything on disk and return the size in bytes."""
        os.fsync(self._fd)
        return self._size

    def close(self) -> None:
        """Let go of the file and its lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_file_at(fd: int, path: Path) -> bool:
    """Whether an open file is still the one that its path names."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except OSError:
        return False
