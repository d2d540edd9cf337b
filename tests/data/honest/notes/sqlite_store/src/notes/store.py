"""Notes on disk."""

import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from notes.note import Note


class Store:
    """A small database."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path)
        connection.execute("create table if not exists notes (id integer primary key, text text, tags text)")
        return connection

    def load(self) -> list[Note]:
        """The notes in the file, in its order."""
        with contextlib.closing(self._connect()) as connection:
            rows = connection.execute("select id, text, tags from notes order by rowid").fetchall()
        return [Note(id, text, frozenset(tags.split())) for id, text, tags in rows]

    def save(self, notes: Iterable[Note]) -> None:
        """Replace what is in the file."""
        with contextlib.closing(self._connect()) as connection, connection:
            connection.execute("delete from notes")
            rows = [(note.id, note.text, " ".join(sorted(note.tags))) for note in notes]
            connection.executemany("insert into notes values (?, ?, ?)", rows)
