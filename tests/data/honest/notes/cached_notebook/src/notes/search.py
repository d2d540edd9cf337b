"""Which notes fit a query."""

import functools

from notes.note import Note


@functools.lru_cache(maxsize=256)
def _words(query: str) -> tuple[tuple[bool, bool, str], ...]:
    """(wanted, is a tag, text) for each word."""
    words = []
    for word in query.lower().split():
        wanted = word[0] != "-"
        bare = word if wanted else word[1:]
        words.append((wanted, bare[:1] == "#", bare.removeprefix("#")))
    return tuple(words)


def matches(note: Note, query: str) -> bool:
    """Whether a note satisfies every word of a query."""
    tags = [tag.lower() for tag in note.tags]
    text = note.text.lower()
    return all((word in (tags if is_tag else text)) == wanted for wanted, is_tag, word in _words(query))
