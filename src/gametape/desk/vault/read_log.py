"""The log of who read and wrote which version of a note, and of attempts' outcomes, in SQLite beside the git history.

A write uses it to find the version that its writer had seen; a person sees from it which notes are useful.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gametape.desk.storage_errors import storage_error

_TABLES = """
pragma synchronous = off;
create table if not exists seen (
    attempt text not null, turn integer not null, note text not null, blob text not null, wrote integer not null,
    at real not null, unique (attempt, turn, note, blob, wrote)
);
create index if not exists seen_by on seen (attempt, note);
create table if not exists outcomes (attempt text primary key, succeeded integer not null, at real not null);
"""

READ_LOG = Path(".git/gametape/reads.sqlite")
"""Where it is in a vault."""


class NoteUsage(NamedTuple):
    """The number of attempts that read a note, by outcome."""

    note: str
    succeeded: int
    failed: int
    unknown: int


@dataclass(frozen=True)
class ReadLog:
    file: Path

    def record_read(self, attempt: str, turn: int, note: str, blob: str, wrote: bool = False) -> None:
        """Record that an attempt knows this version of a note from this turn on. Repeating it changes nothing."""
        with self._open() as database:
            row = (attempt, turn, note, blob, wrote, time.time())
            database.execute("replace into seen values (?, ?, ?, ?, ?, ?)", row)

    def last_seen(self, attempt: str, note: str) -> str | None:
        """The version that an attempt last read or wrote."""
        with self._open() as database:
            query = "select blob from seen where attempt = ? and note = ? order by rowid desc limit 1"
            row = database.execute(query, (attempt, note)).fetchone()
        return row[0] if row else None

    def inherit(self, attempt: str, from_attempt: str, last_turn: int) -> None:
        """Copy to a fork what its origin knew at a turn."""
        with self._open() as database:
            database.execute(
                "insert or ignore into seen select ?, turn, note, blob, wrote, at from seen "
                "where attempt = ? and turn <= ? order by rowid",
                (attempt, from_attempt, last_turn),
            )

    def record_outcome(self, attempt: str, succeeded: bool) -> None:
        """Record whether an attempt succeeded; the last call counts."""
        with self._open() as database:
            database.execute("replace into outcomes values (?, ?, ?)", (attempt, succeeded, time.time()))

    def usage(self) -> list[NoteUsage]:
        """Every note that was read, the one with the most successful attempts first."""
        query = """
            select note, sum(succeeded is 1), sum(succeeded is 0), sum(succeeded is null)
            from (select distinct attempt, note from seen where not wrote) left join outcomes using (attempt)
            group by note order by 2 desc, 3, 4 desc, note
        """
        with self._open() as database:
            return [NoteUsage(*row) for row in database.execute(query)]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self.file.parent.mkdir(exist_ok=True)
        try:
            with closing(sqlite3.connect(self.file, timeout=30)) as database, database:
                database.executescript(_TABLES)
                yield database
        except sqlite3.DatabaseError as error:
            if (trouble := storage_error(error, self.file)) is None:
                raise
            raise trouble from error
