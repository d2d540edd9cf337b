"""The notebook that people use."""

from notes.note import Note
from notes.search import matches


class Notebook:
    """Notes in a store."""

    def __init__(self, store) -> None:
        self.store = store

    def find(self, query: str = "") -> list[Note]:
        """The notes that fit a query, by id."""
        return [note for note in self.store.load() if matches(note, query)]
