"""Vocabulary drift: ever fewer different words."""

from collections import deque

from gametape.watch.monitors.monitor import Evidence
from gametape.watch.seen import Seen

_WINDOW = 200
_AT_LEAST = 12


class VocabularyDrift:
    """How many words there are for each that was not used within the last 200: what a moving type-token ratio loses.

    Short steps are put together until there are words enough to take a share of.
    """

    def __init__(self) -> None:
        self._window: deque[str] = deque()
        self._counts: dict[str, int] = {}
        self._waiting: list[str] = []

    def update(self, step: Seen) -> float | None:
        self._waiting += step.words
        if len(self._waiting) < _AT_LEAST:
            return None
        words, self._waiting = self._waiting, []
        new = 0
        window, counts = self._window, self._counts
        for word in words:
            if word not in counts:
                new += 1
            window.append(word)
            counts[word] = counts.get(word, 0) + 1
        while len(window) > _WINDOW:
            leaving = window.popleft()
            if counts[leaving] == 1:
                del counts[leaving]
            else:
                counts[leaving] -= 1
        return len(words) / (new + 0.5)

    def evidence(self) -> Evidence:
        return {
            "different_words": len(self._counts),
            "of": len(self._window),
            "commonest": sorted(self._counts, key=lambda word: -self._counts[word])[:8],
        }
