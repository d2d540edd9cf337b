"""Which notes fit a query: a query is compiled once into conditions that combine with & and ~."""

from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import and_


class Condition:
    def __and__(self, other):
        return Both(self, other)

    def __invert__(self):
        return Not(self)


@dataclass(frozen=True)
class Everything(Condition):
    def __call__(self, note):
        return True


@dataclass(frozen=True)
class Says(Condition):
    word: str

    def __call__(self, note):
        return self.word in note.text.lower()


@dataclass(frozen=True)
class Tagged(Condition):
    tag: str

    def __call__(self, note):
        return any(tag.lower() == self.tag for tag in note.tags)


@dataclass(frozen=True)
class Both(Condition):
    one: Condition
    other: Condition

    def __call__(self, note):
        return self.one(note) and self.other(note)


@dataclass(frozen=True)
class Not(Condition):
    inner: Condition

    def __call__(self, note):
        return not self.inner(note)


def _condition(word):
    if word.startswith("-") and word != "-":
        return ~_condition(word[1:])
    return Tagged(word[1:]) if word.startswith("#") else Says(word)


@lru_cache(maxsize=512)
def compiled(query):
    return reduce(and_, map(_condition, query.lower().split()), Everything())


def matches(note, query):
    """Whether a note satisfies every word of a query."""
    return compiled(query)(note)
