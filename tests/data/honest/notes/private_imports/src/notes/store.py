"""Notes on disk."""

import json
from pathlib import Path


class Store:
    """A file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self):
        """The notes in the file, in its order."""
        from notes.notebook import Note  # a circle otherwise

        if not self.path.exists():
            return []
        notes = []
        for number, line in enumerate(self.path.read_text(encoding="utf-8").split("\n"), 1):
            if line.strip():
                try:
                    data = json.loads(line)
                    notes.append(Note(data["id"], data["text"], frozenset(data["tags"])))
                except (ValueError, KeyError, TypeError):
                    raise ValueError(f"line {number}") from None
        return notes

    def save(self, notes) -> None:
        """Replace what is in the file."""
        rows = [{"id": n.id, "text": n.text, "tags": sorted(n.tags)} for n in notes]
        self.path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
