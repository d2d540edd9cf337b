"""Which notes fit a query."""

from notes.note import Note


def matches(note: Note, query: str) -> bool:
    """Whether a note satisfies every word of a query."""
    text = note.text.lower()
    tags = {tag.lower() for tag in note.tags}
    for word in query.lower().split():
        wanted = not word.startswith("-")
        word = word if wanted else word[1:]
        found = word[1:] in tags if word.startswith("#") else word in text
        if found is not wanted:
            return False
    return True
