"""Who runs the errands: at most one process per database, for as long as it lives.

Both kinds of lock free themselves when their holder is killed: a lock on an open file, and a lock of a database
session. The process that holds it writes its id beside it, for people to read.
"""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa

from gametape.desk.database import connect, is_sqlite
from gametape.desk.errands import Desk
from gametape.record.trouble import unwritable

_KEY = 7161954
"""Of the session lock; any number that is ours alone within the database."""


class Held(Protocol):
    """A lock in hand."""

    def is_held(self) -> bool:
        """Whether it still is: a database that restarts gives its locks up."""
        ...

    def release(self) -> None: ...


def try_lock(desk: Desk) -> Held | None:
    """The runner's lock, or None while another process has it."""
    return _FileLock.take(_path(desk)) if is_sqlite(desk.url) else _SessionLock.take(desk.url)


def holder(desk: Desk) -> str:
    """Who has the lock, in words, as far as it is known."""
    if not is_sqlite(desk.url):
        query = sa.text(
            "SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid) "
            "WHERE locktype = 'advisory' AND objid = :key AND granted"
        )
        with desk.database.connect() as connection:
            return connection.scalar(query, {"key": _KEY}) or "another process"
    text = _path(desk).read_text().strip() if _path(desk).exists() else ""
    return f"process {text}" if text else "another process"


def _path(desk: Desk) -> Path:
    return Path(str(sa.make_url(desk.url).database)).with_suffix(".lock")


@dataclass(frozen=True)
class _FileLock:
    fd: int

    @classmethod
    def take(cls, path: Path) -> "_FileLock | None":
        try:
            fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise unwritable(path, error) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            os.close(fd)
            return None
        except OSError as error:
            os.close(fd)
            raise unwritable(path, error) from None
        return cls(fd)

    def is_held(self) -> bool:
        return True

    def release(self) -> None:
        os.ftruncate(self.fd, 0)
        os.close(self.fd)


@dataclass(frozen=True)
class _SessionLock:
    engine: sa.Engine
    connection: sa.Connection

    @classmethod
    def take(cls, url: str) -> "_SessionLock | None":
        engine = connect(url, f"process {os.getpid()} on {os.uname().nodename}"[:63])
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        if connection.scalar(sa.text("SELECT pg_try_advisory_lock(:key)"), {"key": _KEY}):
            return cls(engine, connection)
        connection.close()
        engine.dispose()
        return None

    def is_held(self) -> bool:
        try:
            return bool(self.connection.scalar(sa.text("SELECT 1")))
        except sa.exc.DBAPIError:
            return False

    def release(self) -> None:
        self.connection.invalidate()
        self.engine.dispose()
