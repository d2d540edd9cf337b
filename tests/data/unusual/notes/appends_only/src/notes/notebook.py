"""The notebook that people use."""

from collections import Counter
from contextlib import contextmanager
from itertools import chain

from notes.note import Note
from notes.search import matches


class Notebook:
    """Notes in a store."""

    def __init__(self, store):
        self.store = store

    @contextmanager
    def _changed(self):
        notes = self.store.load()
        yield notes
        self.store.save(notes)

    def add(self, text, tags=()):
        """Keep a new note."""
        if not (text := text.strip()):
            raise ValueError("a note needs a text")
        with self._changed() as notes:
            last = max((note.id for note in notes), default=0)
            notes.append(Note(last + 1, text, frozenset(map(str.lower, tags))))
        return notes[-1]

    def remove(self, id):
        """Forget a note."""
        with self._changed() as notes:
            index = {note.id: at for at, note in enumerate(notes)}[id]
            del notes[index]

    def find(self, query=""):
        """The notes that fit a query, by id."""
        return sorted(filter(lambda note: matches(note, query), self.store.load()), key=lambda note: note.id)

    def tags(self):
        """How many notes each tag has."""
        return dict(Counter(chain.from_iterable(note.tags for note in self.store.load())))
