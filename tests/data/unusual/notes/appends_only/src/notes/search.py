"""Which notes fit a query."""

import operator

_TESTS = {
    "#": lambda note, word: word[1:] in {tag.lower() for tag in note.tags},
    "-": lambda note, word: operator.not_(_test(note, word[1:])),
}


def _plain(note, word):
    return word in note.text.lower()


def _test(note, word):
    return _TESTS.get(word[0] if len(word) > 1 or word == "#" else "", _plain)(note, word)


def matches(note, query):
    """Whether a note satisfies every word of a query."""
    return all(_test(note, word) for word in query.lower().split())
