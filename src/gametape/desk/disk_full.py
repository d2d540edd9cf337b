"""A disk that takes no more, as files and databases say it.

The workflow engine tries again, or waits, and says so in its log alone. So whoever runs it listens to all databases of
the process, and leaves with a word about it; errands are left pending, and go on when there is room.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from gametape.core.errors import GametapeError
from gametape.record.errors import DISK_FULL_ERRNOS, OutOfDiskSpace, write_error
from gametape.sandbox.snapshots.errors import DiskFull

_SQLITE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
_POSTGRESQL = ("53100", "25006")
"""disk_full, read_only_sql_transaction."""


def disk_full_error(error: BaseException, what: Path | str = "the desk's database") -> GametapeError | None:
    """The same in words, if this is a disk that is full, or a database that may not be written to."""
    if isinstance(error, OutOfDiskSpace | DiskFull):
        return error
    if isinstance(error, OSError):
        return (
            write_error(Path(error.filename or "a file of the desk"), error)
            if error.errno in DISK_FULL_ERRNOS
            else None
        )
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorcode", None)
    if (code is None or code & 0xFF not in _SQLITE) and getattr(cause, "sqlstate", None) not in _POSTGRESQL:
        return None
    return OutOfDiskSpace(f"{what}: cannot be written ({cause}): free some space, or see that it may be written to")


@contextmanager
def report_disk_full(report: Callable[[GametapeError], None]) -> Iterator[None]:
    """Tell of every such error of a database in this process."""

    def on_error(context: sa.ExceptionContext) -> None:
        if (full := disk_full_error(context.original_exception)) is not None:
            report(full)

    sa.event.listen(sa.Engine, "handle_error", on_error)
    try:
        yield
    finally:
        sa.event.remove(sa.Engine, "handle_error", on_error)
