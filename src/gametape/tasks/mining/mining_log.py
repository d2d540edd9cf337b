"""What a mining run has finished, one line each, so that nothing is done twice however the run ends.

The first line says what is mined and how; a log of another source or other options is not continued. A line counts once
its newline is on disk. What was learned of the code base before (baseline, map) is a line too.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from gametape.core.errors import BadInput
from gametape.record.append_log import AppendLog
from gametape.record.atomic import sync_directory
from gametape.record.errors import printable_path, read_error, write_error

MINING_LOG_NAME = "mine.jsonl"
_FORMAT = 1


class MiningLog:
    """The one writer of a mining run's records."""

    def __init__(self, log: AppendLog, records: list[dict[str, Any]]) -> None:
        self._log, self._records = log, records

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
        except OSError as error:
            raise write_error(path, error) from None
        log = AppendLog.open(path, busy="another process is mining into it")
        try:
            records = log.read_records()
            for number, record in enumerate(records):
                if ("kind" if number else "gametape_mine") not in record:
                    raise read_error(path, OSError(0, f"not a mining log: line {number + 1} is no record"))
            if records:
                log.require_header(records[0], header)
            else:
                log.append(header)
                sync_directory(directory)
        except BaseException:
            log.close()
            raise
        return cls(log, records[1:])

    def append(self, record: dict[str, Any]) -> None:
        """Write down what is finished. When this returns it is on disk."""
        self._log.append(record)
        self._records.append(record)

    def records_of_kind(self, kind: str) -> Iterator[dict[str, Any]]:
        """What is written down of one kind, in order."""
        return (record for record in self._records if record["kind"] == kind)

    def close(self) -> None:
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
