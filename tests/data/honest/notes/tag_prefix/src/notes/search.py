"""Which notes fit a query."""

from notes.note import Note


def matches(note: Note, query: str) -> bool:
    """Whether a note satisfies every word of a query."""
    for word in query.lower().split():
        negative = word.startswith("-")
        word = word.lstrip("-")
        if word.startswith("#"):
            hit = any(tag.startswith(word[1:]) for tag in note.tags)
        else:
            hit = word in note.text.lower()
        if hit == negative:
            return False
    return True
