"""Notes on disk."""

import json
import os
import tempfile

from notes.note import Note


class Store:
    """A file of JSON lines."""

    def __init__(self, path):
        self.path = path

    def load(self):
        """The notes in the file, in its order."""
        try:
            with open(self.path, encoding="utf-8", newline="\n") as file:
                return [self._note(line, number) for number, line in enumerate(file, 1) if line.strip()]
        except FileNotFoundError:
            return []

    @staticmethod
    def _note(line, number):
        try:
            match json.loads(line):
                case {"id": int(id), "text": str(text), "tags": list(tags)}:
                    return Note(id, text, frozenset(tags))
        except (ValueError, TypeError):
            pass
        raise ValueError(f"line {number} is not a note")

    def save(self, notes):
        """Replace what is in the file, all at once: a new file takes the old one's place."""
        lines = [json.dumps({"id": n.id, "text": n.text, "tags": sorted(n.tags)}) + "\n" for n in notes]
        handle, name = tempfile.mkstemp(dir=os.path.dirname(os.fspath(self.path)) or ".")
        with open(handle, "w", encoding="utf-8") as file:
            file.writelines(lines)
        os.replace(name, self.path)
