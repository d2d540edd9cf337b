"""The values that tests gave at each parameter, from which new ones are made.

A place is a parameter of a function and a way into its value: elements of a list share one place, and so do the values
of a field. What stands at one place in any test may stand there in a program.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gametape.verify.fresh.guessable import told_parts
from gametape.verify.fresh.program import (
    CallbackReference,
    ObjectReference,
    Path,
    Program,
    ProgramStep,
    argument_fields,
)
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay.transcript import StandIn

Place = tuple[Any, ...]
KEYS = "keys"
"""As the end of a place: the keys of a dict."""
_MOST_VALUES = 400
_IDENTIFIER = re.compile(r"[A-Za-z_][\w\-]*")
TOKEN = re.compile(r"[^\W\d_]+|\d+|\s+|.", re.DOTALL)
"""Words, numbers, white space, and single other characters."""


@dataclass
class PlaceValues:
    """What was seen at one place."""

    values: list[Any] = field(default_factory=list)
    """Each once, in the order in which they came."""
    count: int = 0
    _keys: set[str] = field(default_factory=set)

    def add(self, value: Any) -> None:
        self.count += 1
        key = f"{type(value).__name__} {value!r}"
        if key not in self._keys and len(self.values) < _MOST_VALUES:
            self._keys.add(key)
            self.values.append(value)
            for name in ("texts", "letters", "words", "common_words", "is_choice"):
                self.__dict__.pop(name, None)

    def of_type(self, kind: type) -> list[Any]:
        return [value for value in self.values if type(value) is kind]

    def admits(self, value: Any) -> bool:
        """Whether a value is such as tests gave here: not negative or zero where all numbers were above, and one of the
        options where the texts are options."""
        if type(value) is str:
            return not self.is_choice or value in self.texts
        if type(value) not in (int, float):
            return True
        low = min((number for number in self.values if type(number) in (int, float)), default=value)
        return bool(value > 0 or low < 0 or low == value)

    @functools.cached_property
    def texts(self) -> list[str]:
        return [*map(str, self.of_type(str))]

    @functools.cached_property
    def letters(self) -> str:
        """Every character of the texts, in order, each once."""
        return "".join(sorted({letter for text in self.texts for letter in text}))

    @functools.cached_property
    def words(self) -> Counter[str]:
        """In how many of the texts each word is."""
        return Counter(word for text in self.texts for word in {*TOKEN.findall(text)} if word[0].isalpha())

    @functools.cached_property
    def common_words(self) -> frozenset[str]:
        """Words that mean something to the function, as it seems: units, keywords, names of fields."""
        several = max(2, len(self.texts) // 5)
        short = {word for word in self.words if len(word) <= 2}
        return frozenset({word for word, count in self.words.items() if count >= several} | short)

    @functools.cached_property
    def is_choice(self) -> bool:
        """Whether the texts look like the names of options: a few single words, again and again."""
        texts = self.texts
        return (
            bool(texts)
            and all(_IDENTIFIER.fullmatch(text) for text in texts)
            and len(texts) <= 12
            and self.count >= 2.5 * len(texts)
        )


class ValueCorpus:
    """The values of all places."""

    def __init__(self) -> None:
        self.places: dict[Place, PlaceValues] = {}
        self.recorded_calls: set[str] = set()
        self.recorded_answers: dict[str, set[str]] = {}

    def at(self, place: Place) -> PlaceValues:
        return self.places.get(place) or PlaceValues()

    def learn(self, programs: Iterable[Program]) -> None:
        for program in programs:
            for step in program.steps:
                self.recorded_calls.add(call_key(step))
                self.recorded_answers.setdefault(step.function, set()).update(map(repr, told_parts(step.recorded)))
                for place, path in argument_places(step.function, step.operation, step.fields):
                    self._learn_value(place, _at(step.fields, path))

    def _learn_value(self, place: Place, value: Any) -> None:
        waiting = [(place, value)]
        while waiting:
            at, part = waiting.pop()
            if is_plain(part):
                self.places.setdefault(at, PlaceValues()).add(part)
            if isinstance(part, dict):
                waiting += [((*at, KEYS), key) for key in part]
            waiting += [(inner, child) for inner, _, child in children(at, part)]


def argument_places(function: str, operation: int, fields: tuple[Any, ...]) -> Iterator[tuple[Place, Path]]:
    """The arguments of a request, each with its place and its path in the fields."""
    for index in argument_fields(operation, fields):
        given = fields[index]
        if isinstance(given, tuple):
            first = _words_before_arguments(function, given) if operation == words.RUN_PROGRAM else 0
            yield from (((function, position), (index, position)) for position in range(first, len(given)))
        elif isinstance(given, dict):
            yield from (((function, name), (index, (name,))) for name in given)
        elif given is not None:
            yield (function, "value"), (index,)


def _words_before_arguments(function: str, command: tuple[str, ...]) -> int:
    """The words of a command line up to the program that it starts."""
    return next((at + 1 for at, word in enumerate(command) if function == f"program:{word}"), len(command))


def children(place: Place, value: Any) -> Iterator[tuple[Place, Any, Any]]:
    """The parts of a container: their place, their position or key, and themselves."""
    if isinstance(value, list):
        yield from (((*place, "[]"), index, child) for index, child in enumerate(value))
    elif isinstance(value, tuple):
        yield from (((*place, "()", index), index, child) for index, child in enumerate(value))
    elif isinstance(value, (set, frozenset)):
        yield from (((*place, "{}"), child, child) for child in sorted(value, key=repr))
    elif isinstance(value, dict):
        for key, child in value.items():
            named = isinstance(key, str) and _IDENTIFIER.fullmatch(key)
            yield ((*place, "{}", key) if named else (*place, "{:}")), key, child


def is_plain(value: Any) -> bool:
    """Whether a value holds nothing but plain data."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (StandIn, ObjectReference, CallbackReference)):
            return False
        if isinstance(part, (list, tuple, set, frozenset)):
            waiting += part
        elif isinstance(part, dict):
            waiting += [*part.keys(), *part.values()]
    return True


def call_key(step: ProgramStep) -> str:
    """Identifies a call by its function and arguments."""
    given = step.fields if step.operation == words.RUN_PROGRAM else step.fields[1:]  # the object has no name of its own
    return f"{step.function} {given!r}"


def _at(fields: Any, path: Path) -> Any:
    for step in path:
        fields = fields[step[0] if isinstance(step, tuple) else step]
    return fields
