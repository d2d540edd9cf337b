"""What a mining run has finished, one line each, so that nothing is done twice however the run ends.

The first line says what is mined and how; a ledger of another source or other options is not continued. A line counts
once its newline is on disk. What was learned of the code base before (baseline, map) is a line too.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from gametape.core.errors import BadInput
from gametape.record.atomic import sync_directory, write_all
from gametape.record.errors import printable_path, read_error, write_error

MINING_LOG_NAME = "mine.jsonl"
_FORMAT = 1


class MiningLog:
    """The one writer of a ledger."""

    def __init__(self, path: Path, fd: int, records: list[dict[str, Any]]) -> None:
        self._path = path
        self._fd = fd
        self._records = records

    @classmethod
    def open(cls, directory: Path, run: dict[str, Any], resume: bool) -> Self:
        """Begin one in a new or empty directory, or, to resume, go on where the same run ended."""
        path = directory / MINING_LOG_NAME
        header = {"gametape_mine": _FORMAT, **run}
        try:
            if directory.exists() and not directory.is_dir():
                raise BadInput(f"{printable_path(directory)}: not a directory; give the name of a new one")
            if directory.is_dir() and any(directory.iterdir()) and not resume:
                there = "begun before; --resume goes on with it" if path.exists() else "not empty"
                raise BadInput(f"{printable_path(directory)}: {there}, or give the name of a new directory")
            if resume and directory.is_dir() and any(directory.iterdir()) and not path.exists():
                raise BadInput(f"{printable_path(directory)}: nothing to resume there, and it is not empty")
            directory.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise write_error(path, error) from None
        try:
            _lock(fd, path)
            records = _read(fd, path)
            ledger = cls(path, fd, records[1:])
            if not records:
                ledger._write(header)
                sync_directory(directory)
            elif records[0] != header:
                raise BadInput(
                    f"{printable_path(path)}: begun with {_difference(records[0], header)}; that cannot be resumed"
                )
        except BaseException as error:
            os.close(fd)
            if isinstance(error, OSError):
                raise write_error(path, error) from None
            raise
        return ledger

    def append(self, record: dict[str, Any]) -> None:
        """Write down what is finished. When this returns it is on disk."""
        try:
            self._write(record)
        except OSError as error:
            raise write_error(self._path, error) from None
        self._records.append(record)

    def records_of_kind(self, kind: str) -> Iterator[dict[str, Any]]:
        """What is written down of one kind, in order."""
        return (record for record in self._records if record["kind"] == kind)

    def close(self) -> None:
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, record: dict[str, Any]) -> None:
        line = json.dumps(record).encode() + b"\n"
        size = os.fstat(self._fd).st_size
        try:
            write_all(self._fd, line)
            os.fsync(self._fd)
        except BaseException as error:
            if isinstance(error, OSError) or os.fstat(self._fd).st_size < size + len(line):
                os.ftruncate(self._fd, size)
            raise


def _lock(fd: int, path: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BadInput(f"{printable_path(path)}: another process is mining into it") from None


def _read(fd: int, path: Path) -> list[dict[str, Any]]:
    """Every whole line; a torn one at the end is cut off."""
    with open(fd, "rb", closefd=False) as file:
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        os.ftruncate(fd, len(whole))
    try:
        records = [json.loads(line) for line in whole.splitlines()]
    except ValueError as error:
        raise read_error(path, OSError(0, f"not a ledger: {error}")) from None
    for number, record in enumerate(records):
        if not isinstance(record, dict) or ("kind" if number else "gametape_mine") not in record:
            raise read_error(path, OSError(0, f"not a ledger: line {number + 1} is no record"))
    return records


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    names = [name for name in {**new, **old} if old.get(name) != new.get(name)]
    return ", ".join(f"{name} {old.get(name)!r}, not {new.get(name)!r}" for name in names)
