"""Which notes fit a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from notes.note import Note


class Term(Protocol):
    def __call__(self, note: Note) -> bool: ...


@dataclass(frozen=True)
class Word:
    word: str

    def __call__(self, note: Note) -> bool:
        return self.word in note.text.lower()

    def __invert__(self) -> Not:
        return Not(self)


@dataclass(frozen=True)
class Tag:
    tag: str

    def __call__(self, note: Note) -> bool:
        return any(tag.lower() == self.tag for tag in note.tags)

    def __invert__(self) -> Not:
        return Not(self)


@dataclass(frozen=True)
class Not:
    term: Term

    def __call__(self, note: Note) -> bool:
        return not self.term(note)


def parse(query: str) -> list[Term]:
    """A query as terms that all have to hold."""
    return [_term(word) for word in query.lower().split()]


def _term(word: str) -> Term:
    plain = word.removeprefix("-")
    term = Tag(plain[1:]) if plain.startswith("#") else Word(plain)
    return ~term if word.startswith("-") else term


def matches(note: Note, query: str) -> bool:
    """Whether a note satisfies every word of a query."""
    return all(term(note) for term in parse(query))
