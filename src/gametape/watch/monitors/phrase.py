"""Phrase fixation: the same four words in step after step."""

from gametape.watch.monitors.monitor import OFTEN, WINDOW, Evidence, Examples, of_a_window
from gametape.watch.monitors.window import CountedWindow
from gametape.watch.seen import Seen
from gametape.watch.words import PHRASE, Gram


class PhraseFixation:
    """In how many of the last fifty steps the commonest phrase of this one occurred."""

    def __init__(self) -> None:
        self._window: CountedWindow[Gram] = CountedWindow(WINDOW)
        self._examples = Examples()

    def update(self, step: Seen) -> float | None:
        grams = step.grams
        if not grams:
            return None
        counts = self._window.counts
        often = max(counts.get(gram, 0) for gram in grams)
        if often >= OFTEN:
            self._examples.add(step.text)
        statistic = of_a_window(often, len(self._window))
        self._window.add(grams)
        return statistic

    def evidence(self) -> Evidence:
        commonest, often = max(self._window.counts.items(), key=lambda pair: pair[1])
        phrase = _grown(commonest, self._window.counts, often)
        share = often / len(self._window)
        return {"phrase": " ".join(phrase), "share": round(share, 3), "examples": self._examples.texts}


def _grown(gram: Gram, counts: dict[Gram, int], often: int) -> list[str]:
    """The phrase a gram is part of, with each neighbour that is nearly as frequent. A short one is all of a text."""
    if len(gram) < PHRASE:
        return list(gram)
    common = {other for other, count in counts.items() if count >= 0.8 * often and len(other) == len(gram)}
    phrase = list(gram)
    for _ in range(20):
        following = next((other for other in common if list(other[:-1]) == phrase[1 - len(gram) :]), None)
        if following is None:
            break
        phrase.append(following[-1])
    for _ in range(20):
        leading = next((other for other in common if list(other[1:]) == phrase[: len(gram) - 1]), None)
        if leading is None:
            break
        phrase.insert(0, leading[0])
    return phrase
