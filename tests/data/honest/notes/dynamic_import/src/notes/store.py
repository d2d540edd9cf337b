"""Notes on disk."""

import json
from collections.abc import Iterable
from pathlib import Path

from notes.note import Note


class Store:
    """A file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> list[Note]:
        """The notes in the file, in its order."""
        notes: list[Note] = []
        if not self.path.exists():
            return notes
        with self.path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    notes.append(self._read(line, number))
        return notes

    @staticmethod
    def _read(line: str, number: int) -> Note:
        try:
            fields = json.loads(line)
            return Note(fields["id"], fields["text"], frozenset(fields["tags"]))
        except (ValueError, LookupError, TypeError):
            raise ValueError(f"line {number}: no note") from None

    def save(self, notes: Iterable[Note]) -> None:
        """Replace what is in the file."""
        with self.path.open("w", encoding="utf-8") as file:
            for note in notes:
                json.dump({"id": note.id, "text": note.text, "tags": sorted(note.tags)}, file)
                file.write("\n")
