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
        text = text.strip()
        if not text:
            raise ValueError("no text")
        notes = self.store.load()
        next_id = 1 + max([0, *(note.id for note in notes)])
        notes.append(Note(next_id, text, frozenset(map(str.lower, tags))))
        self.store.save(notes)
        return notes[-1]

    def remove(self, id: int) -> None:
        """Forget a note."""
        by_id = {note.id: note for note in self.store.load()}
        del by_id[id]
        self.store.save(by_id.values())

    def find(self, query: str = "") -> list[Note]:
        """The notes that fit a query, by id."""
        found = [note for note in self.store.load() if matches(note, query)]
        found.sort(key=lambda note: note.id)
        return found

    def tags(self) -> dict[str, int]:
        """How many notes each tag has."""
        counts: dict[str, int] = {}
        for note in self.store.load():
            for tag in note.tags:
                counts[tag] = counts.get(tag, 0) + 1
        return counts
