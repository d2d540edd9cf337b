"""Template collapse: step after step made of the same words with different fillings.

Two views of it. Fingerprints of word sets find a template whose fixed words outnumber its fillings, and compression
against what was just said finds it where they do not. MinHash on shingles finds neither: every slot breaks a shingle.
"""

import zlib
from collections import deque
from difflib import SequenceMatcher

from gametape.watch.monitors.monitor import OFTEN, SENTENCE, WINDOW, Evidence, Examples, of_a_window
from gametape.watch.seen import Seen

SLOT = "{}"


class TemplateCollapse:
    """How many of the last fifty steps are like this one: a third of all their words is in both (Jaccard)."""

    def __init__(self) -> None:
        self._window: deque[tuple[int, int]] = deque(maxlen=WINDOW)
        self._texts = Examples(most=4)

    def update(self, step: Seen) -> float | None:
        if len(step.words) < SENTENCE:
            return None
        bits = step.fingerprint
        size = bits.bit_count()
        # |A and B| / |A or B| >= 1/3 is 4 |A and B| >= |A| + |B|
        alike = sum(4 * (bits & other).bit_count() >= size + other_size for other, other_size in self._window)
        statistic = of_a_window(alike, len(self._window))
        self._window.append((bits, size))
        if alike >= OFTEN:
            self._texts.add(step.text)
        return statistic

    def evidence(self) -> Evidence:
        return {"template": slotted(self._texts.texts), "examples": self._texts.texts}


class Compression:
    """How well this step compresses, given what was said just before it."""

    def __init__(self) -> None:
        self._before = b""
        self._texts = Examples(most=4)

    def update(self, step: Seen) -> float | None:
        text = step.text[:1500].encode(errors="replace")
        if len(step.words) < 3:
            return None
        compressor = zlib.compressobj(1, zlib.DEFLATED, -12, 4, zlib.Z_DEFAULT_STRATEGY, self._before)
        size = len(compressor.compress(text)) + len(compressor.flush())
        self._before = (self._before + b"\n" + text)[-3000:]
        self._texts.add(step.text)
        return len(text) / size

    def evidence(self) -> Evidence:
        return {"template": slotted(self._texts.texts), "examples": self._texts.texts}


def slotted(texts: list[str]) -> str:
    """What texts have in common, word by word, with `{}` where they differ."""
    if not texts:
        return ""
    template = texts[-1].split()
    for text in texts[:-1]:
        words = text.split()
        if not words:
            continue
        kept: list[str] = []
        for tag, start, end, _, _ in SequenceMatcher(None, template, words, autojunk=False).get_opcodes():
            if tag == "equal":
                kept += template[start:end]
            elif not kept or kept[-1] != SLOT:
                kept.append(SLOT)
        template = kept
    return " ".join(word for at, word in enumerate(template) if word != SLOT or at == 0 or template[at - 1] != SLOT)
