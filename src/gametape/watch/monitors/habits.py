"""Countable habits of a step: marks, attitudes, language, sense, and whether anything is still done.

Each is a yes or no, or a number that the baseline makes one. `watch/habit_channel.py` follows all of their rates.
"""

import re
from collections import OrderedDict
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from gametape.watch.lexicon import ATTITUDES, WAITS, refuses
from gametape.watch.normalised import normalised
from gametape.watch.observed_step import ObservedStep

WINDOW = 40
"""Steps among which a habit must have been so many times, whatever the evidence is: a burst is no habit."""
_EMOJI = re.compile("[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]")
_WORDS_IN_CAPITALS = re.compile(r"\b[A-Z]{2,}\b")
_SENSE = 6
"""A text with fewer words may do without function words."""
_BEFORE_A_NOUN = frozenset(("the", "an", "my", "your", "our", "their", "its", "every"))
_NEVER_LAST = frozenset(("the", "an", "of", "and", "or", "with", "from", "by", "at", "my", "your", "our", "their"))
_NO_NOUN = _NEVER_LAST | frozenset(
    ("a", "to", "is", "in", "it", "for", "on", "as", "was", "are", "but", "not", "have", "which", "be", "that", "this")
)
_MOST_KNOWN = 20_000
_MOST_STATES = 4000
_AGO = 40
"""What was done more recently in the same session is left to the monitor of loops."""
_LONG_TEXT = 400
"""Characters of a text that are searched for marks."""


@dataclass(frozen=True)
class Habit:
    """A habit and its least tolerated rate. `needed` is how often it must have been among the last steps.

    `above` and `below` are for numbers: a step counts beyond so many times the baseline's nineteenth twentieth, or
    below so many times its first twentieth. `falls` is a habit that may also be lost, with that least rate of its
    absence.
    """

    name: str
    least: float
    needed: int = 16
    of: Literal["text", "step"] = "text"
    above: float | None = None
    below: float | None = None
    no_less: float = 0.0
    """A number below this counts in no case, where numbers above a cut count."""
    no_more: float = float("inf")
    falls: float | None = None
    rare: bool = False
    """Whether a baseline without it means that the least rate is the usual one."""
    grows: bool = False
    """Whether the number depends on how much was seen before: the baseline's first half says nothing then."""


HABITS = (
    Habit("emoji", 0.2),
    Habit("code", 0.45, 24, falls=0.8),
    Habit("question", 0.4, 22, falls=0.8),
    Habit("exclamation", 0.4, 22),
    Habit("capitals", 0.15, 10),
    Habit("thanks", 0.12, 10),
    Habit("praise", 0.2, 14),
    Habit("apology", 0.12, 10),
    Habit("waiting", 0.2, 14),
    Habit("done", 0.35, 20),
    Habit("refusal", 0.02, 5, rare=True),
    Habit("stuck", 0.08, 8),
    Habit("numbers", 0.25, 16),
    Habit("characters", 0.2, 14),
    Habit("new language", 0.25, 18),
    Habit("length", 0.3, 20, above=1.5),
    Habit("brevity", 0.45, 24, below=0.5, no_more=3),
    Habit("function words", 0.2, 14, below=0.6, no_more=0.2),
    Habit("known words", 0.2, 14, below=0.6, no_more=0.5, grows=True),
    Habit("broken order", 0.03, 6, rare=True),
    Habit("same text", 0.2, 14),
    Habit("no tool", 0.3, 28, of="step"),
    Habit("done before", 0.35, 22, of="step"),
)


def _shouts(text: str, words: int) -> bool:
    return 2 * len(_WORDS_IN_CAPITALS.findall(text)) > min(words, 60)


def _is_broken(words: list[str]) -> bool:
    """Whether something stands where no English sentence has it, as in shuffled text."""
    return words[-1] in _NEVER_LAST or any(two in _NO_NOUN for one, two in pairwise(words) if one in _BEFORE_A_NOUN)


class HabitMeasures:
    """Measures every habit of a step: a number or a truth by name. A habit that is left out says nothing here."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._known_before: set[str] = set()
        self._texts: OrderedDict[int, None] = OrderedDict()
        self._states: OrderedDict[int, tuple[int, str | None]] = OrderedDict()
        self._languages: dict[str, int] = {}
        self._steps = 0
        self.frozen = False
        """Whether the baseline is over: from then on a language is new or not."""

    def of(self, step: ObservedStep) -> dict[str, float]:
        self._steps += 1
        found: dict[str, float] = {"no tool": not step.actions}
        before = self._done_before(step)
        if before is not None:
            found["done before"] = before
        if not step.silent:
            self._add_text(step, found)
        return found

    def _add_text(self, step: ObservedStep, found: dict[str, float]) -> None:
        text, words = step.text, step.words
        head = text if len(text) <= _LONG_TEXT else text[: _LONG_TEXT // 2] + text[-_LONG_TEXT // 2 :]
        lower, traits = head.lower(), step.traits
        found["emoji"] = not head.isascii() and _EMOJI.search(head) is not None
        found["code"] = "```" in text
        found["question"] = "?" in head or "\uff1f" in head
        found["exclamation"] = "!" in head or "\uff01" in head
        found["capitals"] = len(words) > 2 and not head[2:12].islower() and _shouts(head, len(words))
        for attitude in ATTITUDES:
            if attitude not in ("decline", "waiting"):
                found[attitude] = traits.has(attitude)
        found["waiting"] = traits.has("waiting") and WAITS.search(lower) is not None
        found["refusal"] = refuses(lower, traits)
        found["length"] = len(words)
        if not self._names_its_call(step):
            found["brevity"] = len(words)
        if words:
            found["numbers"] = len(words) > 3 and 2 * words.count("0") > len(words)
        if len(words) < _SENSE:
            return
        repeated = 0 if "0" in words else len(words) - 3 - len(step.grams)
        found["stuck"] = repeated >= 8 and 5 * repeated > len(words)
        found["characters"] = head.isascii() and 2 * len(
            [word for word in words if len(word) == 1 and word != "0"]
        ) > len(words)
        found["function words"] = traits.function_words / len(words)
        found["known words"] = self._known_share(words)
        found["broken order"] = _is_broken(words)
        found["same text"] = self._same_text(words)
        self._add_language(step.language, found)

    @staticmethod
    def _names_its_call(step: ObservedStep) -> bool:
        """Whether a short text says what its own call is about."""
        if not step.actions or len(step.words) > _SENSE:
            return False
        arguments = " ".join(action.arguments[:_LONG_TEXT] for action in step.actions[:8]).lower()
        return any(word in arguments for word in step.words)

    def _known_share(self, words: list[str]) -> float:
        known, before = self._known, self._known_before
        share = len([word for word in words if word in known or word in before]) / len(words)
        known.update(words)
        if len(known) > _MOST_KNOWN:
            self._known, self._known_before = set(), known
        return share

    def _same_text(self, words: list[str]) -> bool:
        key = hash(frozenset(words))
        seen = key in self._texts
        self._texts[key] = None
        self._texts.move_to_end(key)
        if len(self._texts) > _MOST_STATES:
            self._texts.popitem(last=False)
        return seen

    def _add_language(self, language: str | None, found: dict[str, float]) -> None:
        if language is None:
            return
        if not self.frozen:
            self._languages[language] = self._languages.get(language, 0) + 1
        total = sum(self._languages.values())
        found["new language"] = self.frozen and total >= 10 and 50 * self._languages.get(language, 0) < total

    def _done_before(self, step: ObservedStep) -> float | None:
        """Whether the same was done with the same result, or said, in an earlier session or long ago."""
        if step.actions:
            key = normalised(step).state
        elif len(step.words) >= _SENSE:
            key = hash(frozenset(step.words))
        else:
            return None
        last = self._states.get(key)
        self._states[key] = (self._steps, step.session)
        self._states.move_to_end(key)
        if len(self._states) > _MOST_STATES:
            self._states.popitem(last=False)
        return last is not None and (self._steps - last[0] > _AGO or step.session != last[1])
