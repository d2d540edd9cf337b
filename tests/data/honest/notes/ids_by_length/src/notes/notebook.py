"""The notebook that people use."""

from collections.abc import Iterable

from notes.note import Note
from notes.search import matches
from notes.store import Store


class Notebook:
    """Notes in a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def add(self, text: str, tags: Iterable[str] = ()) -> Note:
        """Keep a new note."""
        assert text.strip(), "a note needs a text"
        notes = self.store.load()
        note = Note(len(notes) + 1, text.strip(), frozenset(t.lower() for t in tags))
        self.store.save([*notes, note])
        return note

    def remove(self, id: int) -> None:
        """Forget a note."""
        notes = self.store.load()
        if id not in [n.id for n in notes]:
            raise KeyError(id)
        self.store.save(n for n in notes if n.id != id)

    def find(self, query: str = "") -> list[Note]:
        """The notes that fit a query, by id."""
        return [n for n in self.store.load() if matches(n, query)]

    def tags(self) -> dict[str, int]:
        """How many notes each tag has."""
        return {t: sum(t in n.tags for n in self.store.load()) for n in self.store.load() for t in n.tags}
