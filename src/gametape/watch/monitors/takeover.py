"""Takeover: a word, a tic or a file has become common that was not common before."""

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable

from gametape.watch.lexicon import FUNCTION
from gametape.watch.monitors.monitor import SENTENCE, WINDOW, CountedWindow, Evidence, Examples
from gametape.watch.normalised import normalised
from gametape.watch.observed_step import ObservedStep
from gametape.watch.text_features import text_marks

_MEMORY = 1000
"""Steps after which the usual frequencies have decayed by two thirds."""
_MOST_ITEMS = 4000
_HEAVY = 1e100
_AT_LEAST = 7
"""An item in fewer of the last fifty steps has not risen."""
_ENOUGH = 15
"""Texts of a language from which on its own frequencies count."""
_REMEMBERED = 200
_TIMES = 4.0
"""An item has risen when it is so many times as common as before."""
_NAME = re.compile(r"[\w./-]+")
_PATH = re.compile(r"/|\.[a-z]{1,4}$")

Items = Callable[[ObservedStep], Iterable[str]]


class _UsualFrequencies:
    """How common items are, recent steps counting most."""

    def __init__(self) -> None:
        self.weights: dict[str, float] = {}
        self.weight = 1.0
        self.total = 0.0

    def add(self, items: Iterable[str]) -> None:
        self.weight *= 1 + 1 / _MEMORY
        self.total += self.weight
        for item in items:
            self.weights[item] = self.weights.get(item, 0.0) + self.weight
        if len(self.weights) > _MOST_ITEMS or self.weight > _HEAVY:
            self._shrink()

    def _shrink(self) -> None:
        """Keep the commonest half, and scale the weights back before floats lose precision."""
        commonest = sorted(self.weights.items(), key=lambda pair: -pair[1])[: _MOST_ITEMS // 2]
        self.weights = {item: weight / self.weight for item, weight in commonest}
        self.total /= self.weight
        self.weight = 1.0


class Takeover:
    """How many of the last fifty steps share with this one an item that has become more frequent.

    The usual frequencies follow slowly, so that a new topic is no alarm for ever; a slow rise is left to the
    monitors that compare with the baseline itself.
    """

    def __init__(self, items: Items, what: str, by_language: bool = False) -> None:
        self._items = items
        self._what = what
        self._by_language = by_language
        self._window: CountedWindow[str] = CountedWindow(WINDOW)
        self._languages: deque[str | None] = deque(maxlen=WINDOW)
        self._usual: dict[str | None, _UsualFrequencies] = {}
        self._examples = Examples()
        self._hot: set[str] = set()

    def update(self, step: ObservedStep) -> float | None:
        items = frozenset(self._items(step))
        if not items:
            return None
        full = len(self._window) == WINDOW
        shared = 0
        language = step.language if self._by_language else None
        risen = self._risen(items, language)
        if risen:
            self._hot = risen
            shared = sum(not risen.isdisjoint(other) for other in self._window.sets)
            self._examples.add(step.text or " ".join(action.arguments for action in step.actions))
        self._remember(items, language)
        return float(shared) if full else None

    def _risen(self, items: frozenset[str], language: str | None) -> set[str]:
        """Items that are far more common than before, in texts of the same language if there were enough of them."""
        counts, usual = self._window.counts, self._usual.get(language)
        if usual is None or usual.total < _ENOUGH * usual.weight:
            usual = max(self._usual.values(), key=lambda each: each.total / each.weight, default=_UsualFrequencies())
        scale = WINDOW * _TIMES / usual.total if usual.total else 0.0
        often = ((item, count) for item in items if (count := counts.get(item, 0)) >= _AT_LEAST)
        return {item for item, count in often if count > scale * usual.weights.get(item, 0.0)}

    def _remember(self, items: frozenset[str], language: str | None) -> None:
        left = self._languages[0] if self._languages else None
        self._languages.append(language)
        leaving = self._window.add(items)
        if leaving:
            self._usual.setdefault(left, _UsualFrequencies()).add(leaving)

    def evidence(self) -> Evidence:
        risen = sorted(self._hot, key=lambda item: (-self._window.counts.get(item, 0), item))[:8]
        share = self._window.counts.get(risen[0], 0) / len(self._window) if risen else 0.0
        return {self._what: risen, "share": round(share, 3), "examples": self._examples.texts}


class SubjectTakeover(Takeover):
    """The same for tools and files. An action that was not made lately is work, whatever file it is on."""

    def __init__(self) -> None:
        super().__init__(touched_subjects, "subject")
        self._actions: OrderedDict[int, None] = OrderedDict()

    def update(self, step: ObservedStep) -> float | None:
        statistic = super().update(step)
        if not step.actions:
            return statistic
        action = hash(normalised(step).action)
        is_new = action not in self._actions
        self._actions[action] = None
        self._actions.move_to_end(action)
        if len(self._actions) > _REMEMBERED:
            self._actions.popitem(last=False)
        return 0.0 if is_new and statistic is not None else statistic


def topic_words(step: ObservedStep) -> Iterable[str]:
    """Words of three letters and more, of texts that are sentences; not those that the step's own calls are about."""
    if len(step.words) < SENTENCE:
        return ()
    about = " ".join(action.arguments[:1000] for action in step.actions[:8]).lower()
    each = zip(step.words, step.traits.each, strict=True)
    return [word for word, traits in each if not traits & FUNCTION and len(word) > 2 and word not in about]


def step_marks(step: ObservedStep) -> Iterable[str]:
    return text_marks(step.text, step.words)


def touched_subjects(step: ObservedStep) -> Iterable[str]:
    """Tools, and the paths among their arguments."""
    for action in step.actions:
        yield action.tool
        yield from (name for name in _NAME.findall(action.arguments[:2000]) if _PATH.search(name))
