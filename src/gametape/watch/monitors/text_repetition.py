"""Monitors of repetition in text: phrases, templates, compression and vocabulary."""

import zlib
from collections import deque
from difflib import SequenceMatcher

from gametape.watch.monitors.monitor import OFTEN, SENTENCE, WINDOW, CountedWindow, Evidence, Examples, scaled_to_window
from gametape.watch.observed_step import ObservedStep
from gametape.watch.text_features import PHRASE, Ngram


class PhraseFixation:
    """In how many of the last fifty steps the commonest phrase of this one occurred."""

    def __init__(self) -> None:
        self._window: CountedWindow[Ngram] = CountedWindow(WINDOW)
        self._examples = Examples()

    def update(self, step: ObservedStep) -> float | None:
        grams = step.grams
        if not grams:
            return None
        counts = self._window.counts
        often = max(counts.get(gram, 0) for gram in grams)
        if often >= OFTEN:
            self._examples.add(step.text)
        statistic = scaled_to_window(often, len(self._window))
        self._window.add(grams)
        return statistic

    def evidence(self) -> Evidence:
        commonest, often = max(self._window.counts.items(), key=lambda pair: pair[1])
        phrase = _grown(commonest, self._window.counts, often)
        share = often / len(self._window)
        return {"phrase": " ".join(phrase), "share": round(share, 3), "examples": self._examples.texts}


def _grown(gram: Ngram, counts: dict[Ngram, int], often: int) -> list[str]:
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


SLOT = "{}"


class TemplateCollapse:
    """How many of the last fifty steps are like this one: a third of all their words is in both (Jaccard)."""

    def __init__(self) -> None:
        self._window: deque[tuple[int, int]] = deque(maxlen=WINDOW)
        self._texts = Examples(most=4)

    def update(self, step: ObservedStep) -> float | None:
        if len(step.words) < SENTENCE:
            return None
        bits = step.fingerprint
        size = bits.bit_count()
        # |A and B| / |A or B| >= 1/3 is 4 |A and B| >= |A| + |B|
        alike = sum(4 * (bits & other).bit_count() >= size + other_size for other, other_size in self._window)
        statistic = scaled_to_window(alike, len(self._window))
        self._window.append((bits, size))
        if alike >= OFTEN:
            self._texts.add(step.text)
        return statistic

    def evidence(self) -> Evidence:
        return {"template": common_template(self._texts.texts), "examples": self._texts.texts}


class Compression:
    """How well this step compresses, given the texts just before it."""

    def __init__(self) -> None:
        self._before = b""
        self._texts = Examples(most=4)

    def update(self, step: ObservedStep) -> float | None:
        text = step.text[:1500].encode(errors="replace")
        if len(step.words) < 3:
            return None
        compressor = zlib.compressobj(1, zlib.DEFLATED, -12, 4, zlib.Z_DEFAULT_STRATEGY, self._before)
        size = len(compressor.compress(text)) + len(compressor.flush())
        self._before = (self._before + b"\n" + text)[-3000:]
        self._texts.add(step.text)
        return len(text) / size

    def evidence(self) -> Evidence:
        return {"template": common_template(self._texts.texts), "examples": self._texts.texts}


def common_template(texts: list[str]) -> str:
    """The words that texts have in common, with `{}` where they differ."""
    if not texts:
        return ""
    template = texts[-1].split()
    for text in texts[:-1]:
        words = text.split()
        if not words:
            continue
        words_in_common: list[str] = []
        for tag, start, end, _, _ in SequenceMatcher(None, template, words, autojunk=False).get_opcodes():
            if tag == "equal":
                words_in_common += template[start:end]
            elif not words_in_common or words_in_common[-1] != SLOT:
                words_in_common.append(SLOT)
        template = words_in_common
    return " ".join(word for at, word in enumerate(template) if word != SLOT or at == 0 or template[at - 1] != SLOT)


_WINDOW = 200
_AT_LEAST = 12


class VocabularyDrift:
    """The number of words per word that was not used within the last 200: what a moving type-token ratio loses.

    Short steps are joined until there are enough words.
    """

    def __init__(self) -> None:
        self._window: deque[str] = deque()
        self._counts: dict[str, int] = {}
        self._waiting: list[str] = []

    def update(self, step: ObservedStep) -> float | None:
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
