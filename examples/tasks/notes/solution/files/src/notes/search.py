"""Which notes fit a query."""

from notes.note import Note


def matches(note: Note, query: str) -> bool:
    """Whether a note satisfies every word of a query."""
    return all(_satisfies(note, word) for word in query.lower().split())


def _satisfies(note: Note, word: str) -> bool:
    if word.startswith("-") and len(word) > 1:
        return not _satisfies(note, word[1:])
    if word.startswith("#"):
        return word[1:] in {tag.lower() for tag in note.tags}
    return word in note.text.lower()
