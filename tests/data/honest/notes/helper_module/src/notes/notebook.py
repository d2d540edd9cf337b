"""The notebook that people use."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from notes.note import Note
from notes.search import matches
from notes.store import Store
from notes.text import fold_all


class Notebook:
    """Notes in a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def add(self, text: str, tags: Iterable[str] = ()) -> Note:
        """Keep a new note."""
        if not (text := text.strip()):
            raise ValueError("a note without a text")
        notes = self.store.load()
        note = Note(max((old.id for old in notes), default=0) + 1, text, fold_all(tags))
        self.store.save(notes + [note])
        return note

    def remove(self, id: int) -> None:
        """Forget a note."""
        groups: defaultdict[bool, list[Note]] = defaultdict(list)
        for note in self.store.load():
            groups[note.id == id].append(note)
        if not groups[True]:
            raise KeyError(id)
        self.store.save(groups[False])

    def find(self, query: str = "") -> list[Note]:
        """The notes that fit a query, by id."""
        return sorted(filter(lambda note: matches(note, query), self.store.load()), key=lambda note: note.id)

    def tags(self) -> Counter[str]:
        """How many notes each tag has."""
        return Counter(tag for note in self.store.load() for tag in note.tags)
