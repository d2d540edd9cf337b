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
from gametape.record.trouble import NO_ROOM, NoRoom, unwritable
from gametape.sandbox.snapshots.trouble import DiskFull

_SQLITE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
_POSTGRESQL = ("53100", "25006")
"""disk_full, read_only_sql_transaction."""


def want_of_room(error: BaseException, what: Path | str = "the desk's database") -> GametapeError | None:
    """The same in words, if this is a disk that is full, or a database that may not be written to."""
    if isinstance(error, NoRoom | DiskFull):
        return error
    if isinstance(error, OSError):
        return unwritable(Path(error.filename or "a file of the desk"), error) if error.errno in NO_ROOM else None
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorcode", None)
    if (code is None or code & 0xFF not in _SQLITE) and getattr(cause, "sqlstate", None) not in _POSTGRESQL:
        return None
    return NoRoom(f"{what}: cannot be written ({cause}): free some space, or see that it may be written to")


@contextmanager
def listening(tell: Callable[[GametapeError], None]) -> Iterator[None]:
    """Tell of every such error of a database in this process."""

    def hear(context: sa.ExceptionContext) -> None:
        if (found := want_of_room(context.original_exception)) is not None:
            tell(found)

    sa.event.listen(sa.Engine, "handle_error", hear)
    try:
        yield
    finally:
        sa.event.remove(sa.Engine, "handle_error", hear)
