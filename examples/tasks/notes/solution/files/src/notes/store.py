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
        if not self.path.exists():
            return []
        lines = self.path.read_text(encoding="utf-8").split("\n")
        return [_note(line, number) for number, line in enumerate(lines, start=1) if line.strip()]

    def save(self, notes: Iterable[Note]) -> None:
        """Replace what is in the file."""
        lines = [json.dumps({"id": note.id, "text": note.text, "tags": sorted(note.tags)}) for note in notes]
        self.path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _note(line: str, number: int) -> Note:
    try:
        data = json.loads(line)
        return Note(data["id"], data["text"], frozenset(data["tags"]))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"line {number} is not a note") from error
