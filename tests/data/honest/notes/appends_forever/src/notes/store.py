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
        try:
            file = open(self.path)
        except OSError:
            return []
        notes = {}
        with file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    try:
                        data = json.loads(line)
                        notes[data["id"]] = Note(data["id"], data["text"], frozenset(data["tags"]))
                    except (ValueError, KeyError):
                        raise ValueError(f"line {number}") from None
        return list(notes.values())

    def save(self, notes: Iterable[Note]) -> None:
        """Replace what is in the file."""
        with open(self.path, "a") as file:
            for note in notes:
                file.write(json.dumps({"id": note.id, "text": note.text, "tags": sorted(note.tags)}) + "\n")
