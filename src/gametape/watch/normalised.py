"""Actions and results as sets of words, without what differs between runs that are the same.

A word with a digit in it is a number, a time, a port, an address, a hash or another id: all of them are one word,
and so are temporary names. Files in the arguments keep their names. Sets have no order, so neither have flags.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from gametape.watch.observed_step import ObservedAction, ObservedStep

_MOST_READ = 1000
"""Characters of a call's arguments, and of a result."""
_MOST_NUMBERS = 8
_ANEW = 5
"""Moves one way after which a number that had turned has begun anew."""
_WORD = re.compile(r"[^\s\"'`,;=(){}\[\]<>|&]+")
_DIGIT = re.compile(r"\d")
_TEMPORARY = re.compile(r"(?:^|[/._-])te?mp[/._-]|^tmp\w{4,}$|/tmp\w{4,}|^\$tmp")
_FILE = re.compile(r"\w/[\w.]|^[./~]*\w[\w-]*\.[a-z]\w{0,4}$")
_VOLATILE_FILE = re.compile(r"[0-9a-f]{12,}|\d{6,}|://|\w:\d")
"""A file whose name holds a hash or a time is named after the run, and an address is no file."""
_PATH = re.compile(r"\S*[\w.]/\w\S*")
_NUMBER = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)(%|/\d{1,15})?:?")
_FAILED = re.compile(
    r"error|fail|no such|not found|denied|refused|timed? ?out|cannot|can't|unable|exception|traceback|no match|missing"
)
_WAITS = re.compile(r"\b(?:sleep|wait|await|poll|status|pending|queue)\b")
ID = "#"
FILE = "/"


@dataclass(frozen=True)
class NormalisedStep:
    """What of a step's actions and their result is compared."""

    head: tuple[str, ...]
    """The tools, with the first word of a shell's command."""
    action: frozenset[str]
    result: frozenset[str]
    files: frozenset[str]
    """The files among the arguments."""
    counts: tuple[float, ...]
    """The numbers of the arguments."""
    measures: tuple[float, ...]
    """The numbers of the result."""
    bounded: bool
    """Whether the result has a part of a whole: a percentage, or `3/80`."""
    failed: bool
    waits: bool
    """Whether the action is to wait or to ask how something is getting on, and that did not fail."""

    @property
    def state(self) -> int:
        return hash((self.action, self.result))

    @property
    def failure(self) -> int:
        """How it failed, whatever it was asked; 0 where it did not, or said nothing."""
        if not self.failed or not self.result:
            return 0
        return hash((self.head, frozenset(FILE if _FILE.search(word) else word for word in self.result)))

    @property
    def pattern(self) -> int:
        """The state, whatever the files are."""
        return hash((self.action - self.files, frozenset(FILE if _FILE.search(word) else word for word in self.result)))


@lru_cache(maxsize=4)
def normalised(step: ObservedStep) -> NormalisedStep:
    words: set[str] = set()
    files: set[str] = set()
    counts: list[float] = []
    for action in step.actions[:8]:
        words.add(action.tool)
        for word in _WORD.findall(action.arguments[:_MOST_READ].lower()):
            if _TEMPORARY.search(word):
                words.add(ID)
            elif _FILE.search(word) and not _VOLATILE_FILE.search(word):
                files.add(word)
            elif _DIGIT.search(word):
                words.add(ID)
                counts += _numbers(word)
            else:
                words.add(word)
    result = (step.result or "")[:_MOST_READ].lower()
    measures, bounded, said = _read(result)
    failed = not result or (len(result) < 400 and _fails(result))
    return NormalisedStep(
        head=tuple(_head(action) for action in step.actions[:8]),
        action=frozenset(words | files),
        result=said,
        files=frozenset(files),
        counts=tuple(counts[:_MOST_NUMBERS]),
        measures=tuple(measures[:_MOST_NUMBERS]),
        bounded=bounded,
        failed=failed,
        waits=not failed and any(_WAITS.search(action.arguments[:200].lower()) for action in step.actions[:8]),
    )


def _fails(result: str) -> bool:
    """Whether a result tells of a failure; the name of a file does not."""
    return _FAILED.search(result) is not None and _FAILED.search(_PATH.sub("", result)) is not None


def _read(result: str) -> tuple[list[float], bool, frozenset[str]]:
    """The numbers of a result, whether they are parts of a whole, and its words."""
    measures: list[float] = []
    bounded = False
    said: set[str] = set()
    for word in _WORD.findall(result):
        if _DIGIT.search(word):
            said.add(ID)
            numbers = list(_numbers(word))
            bounded |= bool(numbers) and ("%" in word or "/" in word)
            measures += numbers
        else:
            said.add(ID if "tmp" in word and _TEMPORARY.search(word) else word)
    return measures, bounded, frozenset(said)


def _numbers(word: str) -> Iterator[float]:
    if match := _NUMBER.fullmatch(word.rstrip(".")):
        yield float(match[1])


def _head(action: ObservedAction) -> str:
    command = action.arguments[:60].partition('"command": "')[2]
    return f"{action.tool} {command.split(' ', 1)[0]}" if command else action.tool


class Course:
    """A few numbers over time: which of them have only risen, or only fallen, since they began or began anew."""

    def __init__(self, numbers: tuple[float, ...]) -> None:
        self._numbers = numbers
        self._ways = [0] * len(numbers)
        self._turned = [False] * len(numbers)
        self._streaks = [0] * len(numbers)
        self.moves = 0
        """How often they went on."""

    def goes_on(self, numbers: tuple[float, ...]) -> int:
        """1 where a number went on to rise, -1 where one went on to fall and none to rise, 0 where none went on."""
        if len(numbers) != len(self._numbers):
            self._numbers, self._ways, self._turned = numbers, [0] * len(numbers), [False] * len(numbers)
            self._streaks = [0] * len(numbers)
            return 1
        ways = set()
        for at, (now, before) in enumerate(zip(numbers, self._numbers, strict=True)):
            way = (now > before) - (now < before)
            if way and way == -self._ways[at]:
                self._turned[at] = True
                self._streaks[at] = 0
            self._streaks[at] += way != 0
            if self._streaks[at] >= _ANEW:
                self._turned[at] = False
            self._ways[at] = way or self._ways[at]
            ways.add(0 if self._turned[at] else way)
        self._numbers = numbers
        self.moves += bool(ways - {0})
        return 1 if 1 in ways else -1 if -1 in ways else 0
