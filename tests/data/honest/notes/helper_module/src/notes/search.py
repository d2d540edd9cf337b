"""Which notes fit a query."""

from notes.note import Note
from notes.text import fold, fold_all


def matches(note: Note, query: str) -> bool:
    """Whether a note satisfies every word of a query."""
    text, tags = fold(note.text), fold_all(note.tags)

    def holds(word: str) -> bool:
        match word[0], word[1:]:
            case "-", rest if rest:
                return not holds(rest)
            case "#", tag:
                return tag in tags
            case _:
                return word in text

    return all(holds(word) for word in fold(query).split())
