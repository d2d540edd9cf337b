"""Notes on disk."""

import gc
import json
import weakref
from collections.abc import Iterable
from pathlib import Path

from notes.note import Note

_open_stores: "weakref.WeakSet[Store]" = weakref.WeakSet()


class Store:
    """A file of JSON lines. What was read is kept as long as the file does not change."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._cached: tuple[tuple[int, int, int], list[Note]] | None = None
        _open_stores.add(self)

    def _stamp(self) -> tuple[int, int, int]:
        status = self.path.stat()
        return status.st_ino, status.st_mtime_ns, status.st_size

    def load(self) -> list[Note]:
        """The notes in the file, in its order."""
        try:
            stamp = self._stamp()
        except FileNotFoundError:
            return []
        if self._cached is None or self._cached[0] != stamp:
            self._cached = stamp, self._read()
        return list(self._cached[1])

    def _read(self) -> list[Note]:
        notes = []
        for number, line in enumerate(self.path.read_text("utf-8").split("\n"), start=1):
            if line.isspace() or not line:
                continue
            try:
                match json.loads(line):
                    case {"id": int(id), "text": str(text), "tags": list(tags)}:
                        notes.append(Note(id, text, frozenset(tags)))
                    case _:
                        raise ValueError("wrong shape")
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error
        return notes

    def save(self, notes: Iterable[Note]) -> None:
        """Replace what is in the file."""
        rows = ({"id": note.id, "text": note.text, "tags": sorted(note.tags)} for note in notes)
        content = "".join(json.dumps(row) + "\n" for row in rows)
        self.path.write_text(content, encoding="utf-8")
        self._cached = None


def forget_everything() -> int:
    """Drop what all stores have cached; returns how many objects the collector freed."""
    for store in list(_open_stores):
        store._cached = None
    return gc.collect()
