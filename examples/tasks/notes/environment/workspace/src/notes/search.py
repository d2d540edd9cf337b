"""Which notes fit a query."""

from notes.note import Note


def matches(note: Note, query: str) -> bool:
    """Whether a note satisfies every word of a query."""
    raise NotImplementedError
