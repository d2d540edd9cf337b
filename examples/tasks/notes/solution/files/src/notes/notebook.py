"""The notebook that people use."""

from collections import Counter
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
        stripped = text.strip()
        if not stripped:
            raise ValueError("a note needs a text")
        notes = self.store.load()
        note = Note(max((each.id for each in notes), default=0) + 1, stripped, frozenset(tag.lower() for tag in tags))
        self.store.save([*notes, note])
        return note

    def remove(self, id: int) -> None:
        """Forget a note."""
        notes = self.store.load()
        kept = [note for note in notes if note.id != id]
        if len(kept) == len(notes):
            raise KeyError(id)
        self.store.save(kept)

    def find(self, query: str = "") -> list[Note]:
        """The notes that fit a query, by id."""
        return sorted((note for note in self.store.load() if matches(note, query)), key=lambda note: note.id)

    def tags(self) -> dict[str, int]:
        """How many notes each tag has."""
        return dict(Counter(tag for note in self.store.load() for tag in note.tags))
