"""Takeover: a word, a tic or a file has become common that was not common before."""

import re
from collections.abc import Callable, Iterable

from gametape.watch.monitors.monitor import SENTENCE, WINDOW, CountedWindow, Evidence, Examples
from gametape.watch.observed_step import ObservedStep
from gametape.watch.text_features import text_marks

_MEMORY = 1000
"""Steps after which the usual frequencies have decayed by two thirds."""
_MOST_ITEMS = 4000
_HEAVY = 1e100
_AT_LEAST = 7
"""An item in fewer of the last fifty steps has not risen."""
_TIMES = 4.0
"""An item has risen when it is so many times as common as before."""
_NAME = re.compile(r"[\w./-]+")
_PATH = re.compile(r"/|\.[a-z]{1,4}$")

Items = Callable[[ObservedStep], Iterable[str]]


class Takeover:
    """How many of the last fifty steps share with this one an item that has become more frequent.

    The usual frequencies follow slowly, so that a new topic is no alarm for ever; a slow rise is left to the
    monitors that compare with the baseline itself.
    """

    def __init__(self, items: Items, what: str) -> None:
        self._items = items
        self._what = what
        self._window: CountedWindow[str] = CountedWindow(WINDOW)
        self._usual: dict[str, float] = {}
        self._weight = 1.0
        self._total = 0.0
        self._examples = Examples()
        self._hot: set[str] = set()

    def update(self, step: ObservedStep) -> float | None:
        items = frozenset(self._items(step))
        if not items:
            return None
        full = len(self._window) == WINDOW
        shared = 0
        risen = self._risen(items)
        if risen:
            self._hot = risen
            shared = sum(not risen.isdisjoint(other) for other in self._window.sets)
            self._examples.add(step.text or " ".join(action.arguments for action in step.actions))
        self._remember(items)
        return float(shared) if full else None

    def _risen(self, items: frozenset[str]) -> set[str]:
        counts, usual = self._window.counts, self._usual
        scale = WINDOW * _TIMES / self._total if self._total else 0.0
        often = ((item, count) for item in items if (count := counts.get(item, 0)) >= _AT_LEAST)
        return {item for item, count in often if count > scale * usual.get(item, 0.0)}

    def _remember(self, items: frozenset[str]) -> None:
        leaving = self._window.add(items)
        if not leaving:
            return
        self._weight *= 1 + 1 / _MEMORY
        self._total += self._weight
        for item in leaving:
            self._usual[item] = self._usual.get(item, 0.0) + self._weight
        if len(self._usual) > _MOST_ITEMS or self._weight > _HEAVY:
            self._shrink()

    def _shrink(self) -> None:
        """Keep the commonest half, and scale the weights back before floats lose precision."""
        commonest = sorted(self._usual.items(), key=lambda pair: -pair[1])[: _MOST_ITEMS // 2]
        self._usual = {item: weight / self._weight for item, weight in commonest}
        self._total /= self._weight
        self._weight = 1.0

    def evidence(self) -> Evidence:
        risen = sorted(self._hot, key=lambda item: (-self._window.counts.get(item, 0), item))[:8]
        share = self._window.counts.get(risen[0], 0) / len(self._window) if risen else 0.0
        return {self._what: risen, "share": round(share, 3), "examples": self._examples.texts}


def topic_words(step: ObservedStep) -> Iterable[str]:
    """Words of three letters and more, of texts that are sentences."""
    return (word for word in step.words if len(word) > 2) if len(step.words) >= SENTENCE else ()


def step_marks(step: ObservedStep) -> Iterable[str]:
    return text_marks(step.text, step.words)


def touched_subjects(step: ObservedStep) -> Iterable[str]:
    """Tools, and the paths among their arguments."""
    for action in step.actions:
        yield action.tool
        yield from (name for name in _NAME.findall(action.arguments[:2000]) if _PATH.search(name))
