"""The notebook that people use."""

from collections.abc import Iterable

from notes.note import Note
from notes.store import Store


class Notebook:
    """Notes in a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def add(self, text: str, tags: Iterable[str] = ()) -> Note:
        """Keep a new note."""
        raise NotImplementedError

    def remove(self, id: int) -> None:
        """Forget a note."""
        raise NotImplementedError

    def find(self, query: str = "") -> list[Note]:
        """The notes that fit a query, by id."""
        raise NotImplementedError

    def tags(self) -> dict[str, int]:
        """How many notes each tag has."""
        raise NotImplementedError
