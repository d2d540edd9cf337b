"""Notes on disk."""

from collections.abc import Iterable
from pathlib import Path

from notes.note import Note


class Store:
    """A file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> list[Note]:
        """The notes in the file, in its order."""
        raise NotImplementedError

    def save(self, notes: Iterable[Note]) -> None:
        """Replace what is in the file."""
        raise NotImplementedError
