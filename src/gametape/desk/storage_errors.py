"""Recognises a full disk and a damaged database in errors of files and databases.

The workflow engine would retry or wait, and only write to its log. So the runner listens to the errors of all databases
in the process and stops with a message. Jobs stay pending, and continue when there is space, or after a repair.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from gametape.core.errors import GametapeError, MissingDependency
from gametape.record.errors import DISK_FULL_ERRNOS, OutOfDiskSpace, write_error
from gametape.record.installation import command_line
from gametape.sandbox.snapshots.errors import DiskFull

_SQLITE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_POSTGRESQL = ("53100", "25006")
"""disk_full, read_only_sql_transaction."""


class DamagedDatabase(MissingDependency):
    """The desk's database cannot be read. `gametape desk repair` makes a new one of what can be had."""


def damaged_database(what: Path | str, why: object) -> DamagedDatabase:
    repair = command_line("desk", "repair")
    return DamagedDatabase(f"{what}: is damaged ({why}); type, with the same --home: {repair}")


def storage_error(error: BaseException, what: Path | str = "the desk's database") -> GametapeError | None:
    """The error to raise if this one means a full disk, a database that may not be written to or a damaged one; else
    None."""
    if isinstance(error, OutOfDiskSpace | DiskFull | DamagedDatabase):
        return error
    if isinstance(error, OSError):
        return (
            write_error(Path(error.filename or "a file of the desk"), error)
            if error.errno in DISK_FULL_ERRNOS
            else None
        )
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in _DAMAGED:
        return damaged_database(what, cause)
    if (code is None or code & 0xFF not in _SQLITE) and getattr(cause, "sqlstate", None) not in _POSTGRESQL:
        return None
    return OutOfDiskSpace(f"{what}: cannot be written ({cause}): free some space, or see that it may be written to")


@contextmanager
def report_storage_errors(report: Callable[[GametapeError], None]) -> Iterator[None]:
    """Report every such error of any database in this process."""

    def on_error(context: sa.ExceptionContext) -> None:
        if (trouble := storage_error(context.original_exception)) is not None:
            report(trouble)

    sa.event.listen(sa.Engine, "handle_error", on_error)
    try:
        yield
    finally:
        sa.event.remove(sa.Engine, "handle_error", on_error)
