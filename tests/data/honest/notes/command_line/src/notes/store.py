"""Notes on disk."""

import contextlib
import json
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from notes.note import Note

_locks: dict[Path, threading.RLock] = {}


class Store:
    """A file of JSON lines. A crash while saving leaves the old file as it was."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = _locks.setdefault(path, threading.RLock())

    def load(self) -> list[Note]:
        """The notes in the file, in its order."""
        with self._lock:
            return list(self._notes())

    def save(self, notes: Iterable[Note]) -> None:
        """Replace what is in the file."""
        content = "".join(self._line(note) for note in notes)
        with self._lock:
            descriptor, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".notes-")
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, self.path)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
                raise

    def _notes(self) -> Iterator[Note]:
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                data = json.loads(line)
                yield Note(id=data["id"], text=data["text"], tags=frozenset(data["tags"]))
            except (KeyError, TypeError, ValueError) as cause:
                raise ValueError(f"{self.path.name}:{number}: not a note") from cause

    @staticmethod
    def _line(note: Note) -> str:
        return json.dumps({"id": note.id, "text": note.text, "tags": sorted(note.tags)}, ensure_ascii=False) + "\n"
