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
        if not self.path.is_file():
            return []
        notes = []
        lines = [line for line in self.path.read_text().splitlines() if line.strip()]
        for number, line in enumerate(lines, 1):
            try:
                data = json.loads(line)
                notes.append(Note(data["id"], data["text"], frozenset(data["tags"])))
            except (ValueError, KeyError) as error:
                raise ValueError(f"bad line {number}") from error
        return notes

    def save(self, notes: Iterable[Note]) -> None:
        """Replace what is in the file."""
        self.path.write_text(
            "\n".join(json.dumps({"id": n.id, "text": n.text, "tags": sorted(n.tags)}) for n in notes) + "\n"
        )
