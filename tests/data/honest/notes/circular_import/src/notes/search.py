"""Which notes fit a query."""

from notes.notebook import Notebook
from notes.note import Note


def matches(note: Note, query: str) -> bool:
    """Whether a note satisfies every word of a query."""
    return note in Notebook.fitting(query)
