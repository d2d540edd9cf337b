"""The notebook that people use."""

import importlib
import os
from collections.abc import Callable, Iterable
from operator import attrgetter

from notes.note import Note
from notes.store import Store


def _matcher() -> Callable[[Note, str], bool]:
    """The function that says what fits; NOTES_SEARCH names another module for experiments."""
    module = importlib.import_module(os.environ.get("NOTES_SEARCH", "notes.search"))
    return module.matches


class Notebook:
    """Notes in a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._matches = _matcher()

    def add(self, text: str, tags: Iterable[str] = ()) -> Note:
        """Keep a new note."""
        if text.isspace() or not text:
            raise ValueError("nothing to note")
        notes = self.store.load()
        newest = max(notes, key=attrgetter("id"), default=None)
        note = Note((newest.id if newest else 0) + 1, text.strip(), frozenset(tag.lower() for tag in tags))
        self.store.save([*notes, note])
        return note

    def remove(self, id: int) -> None:
        """Forget a note."""
        notes = self.store.load()
        for index, note in enumerate(notes):
            if note.id == id:
                del notes[index]
                break
        else:
            raise KeyError(f"no note {id}")
        self.store.save(notes)

    def find(self, query: str = "") -> list[Note]:
        """The notes that fit a query, by id."""
        return sorted((note for note in self.store.load() if self._matches(note, query)), key=attrgetter("id"))

    def tags(self) -> dict[str, int]:
        """How many notes each tag has."""
        everything = [tag for note in self.store.load() for tag in note.tags]
        return {tag: everything.count(tag) for tag in sorted(set(everything))}
