"""Turns a tool's error message into a general rule: sentences without the names and values of the instance."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from gametape.engines.conversation import Call

_CLAUSES = re.compile(r"\n+|\s,\s|;\s+|(?<=[.!?])\s+")
_COMPLAINS = re.compile(r"\W*(?:error|failed|failure|refused|invalid|not run)\b", re.IGNORECASE)
_CONTRAST = re.compile(r"\s*,?\s*\b(?:not|instead of|rather than)\s+(?=\S+\s*$)", re.IGNORECASE)
_HEAD = re.compile(r"\s*:\s+")
_QUOTED = re.compile(r"(?<!\w)([\'\"`])(.+?)\1(?!\w)")
_STATES_A_RULE = re.compile(
    r"\b(?:takes?|must|needs?|requires?|required|only|cannot|can't|should|expects?|expected|allowed|at most|at least"
    r"|never|always|may not|do not|use)\b",
    re.IGNORECASE,
)
_OF_AN_INSTANCE = re.compile(r"[/\\_=<>{}()\[\]@#$%*+^]|\w\.\w|\d")
# fmt: off
_DANGLING = frozenset((
    "in", "of", "at", "to", "from", "with", "by", "is", "are", "named", "called", "for", "on", "as", "no", "a", "an",
    "the", "and", "or", "but", "near", "line", "not",
))
# fmt: on
_MOST_WORDS = 18
_LONGEST, _LONGEST_SENTENCE = 2000, 400
"""Characters of an answer and of a sentence that are read, so that no answer makes parsing slow."""


@dataclass(frozen=True)
class Complaint:
    """One mistake that a tool's answer reports. `about` are the words before the rule, which may name an object;
    `instead` are the words for what was done wrongly."""

    sentence: str
    about: frozenset[str]
    instead: frozenset[str]
    words: frozenset[str]

    @property
    def states_a_rule(self) -> bool:
        return bool(_STATES_A_RULE.search(self.sentence))


def parse_complaints(text: str, tool: str = "") -> list[Complaint]:
    """The complaints in a failed answer, in its order.

    A clause that begins with the word error, or the like, is a complaint, and a clause with "not" after it says what
    was done instead; other clauses are not complaints. Where no clause begins so, the answer is one complaint:
    the first clause that states a rule, or simply the first.
    """
    parts = [part.strip() for part in _CLAUSES.split(text[:_LONGEST]) if part.strip()]
    complaints: list[Complaint] = []
    for index, part in enumerate(parts):
        if _COMPLAINS.match(part):
            after = parts[index + 1] if index + 1 < len(parts) else ""
            complaints.append(_complaint(part, after if after.lower().startswith("not ") else ""))
    if complaints or not parts:
        return complaints
    first = next((part for part in parts if _STATES_A_RULE.search(part)), parts[0])
    return [_complaint(first.removeprefix(f"{tool}: ") if tool else first, "")]


def _complaint(clause: str, contrast: str) -> Complaint:
    head, rest = "", clause
    if _COMPLAINS.match(clause) and (colon := _HEAD.search(clause)):
        head, rest = clause[: colon.start()], clause[colon.end() :]
    sentence, *instead = _CONTRAST.split(rest, maxsplit=1)
    wrong = " ".join([contrast.lower().removeprefix("not "), *instead])
    return Complaint(sentence.strip(" .,:"), words_in(head), words_in(wrong), words_in(f"{clause} {contrast}"))


def words_in(text: str) -> frozenset[str]:
    return frozenset(word for raw in text.split() if (word := raw.strip("'\"`.,:;!?()")))


def argument_names(calls: Iterable[Call]) -> frozenset[str]:
    """The arguments of calls that are one word: names of what the calls act on."""
    values = (value for call in calls for value in _texts(call.arguments))
    return frozenset(value for value in values if value and len(value.split()) == 1)


def generalise(sentence: str, names: Collection[str], known: Collection[str] = ()) -> str:
    """The sentence without what belongs to one instance: these names, and whatever is quoted or looks like a path, an
    identifier or a number, or is not printable. `known` words stay."""
    text = _QUOTED.sub(lambda match: match[2] if match[2] in known else " \0 ", sentence[:_LONGEST_SENTENCE])
    words: list[str] = []
    for raw in text.split():
        word = raw.strip("'\"`.,:;!?")
        if word in known or not _is_instance(word, raw, names, words):
            words.append(raw)
        elif words and words[-1].lower() == "no":
            words += ["such", "thing"]
        elif words and words[-1].lower() in ("a", "an", "the"):
            words.append("thing")
    words = words[:_MOST_WORDS]
    while words and (words[-1].lower().strip(".,:;") in _DANGLING or not words_in(words[-1])):
        words.pop()
    return " ".join(words).strip(" .,:;")


def _is_instance(word: str, raw: str, names: Collection[str], before: list[str]) -> bool:
    if not raw.isprintable() or word in names:
        return True
    if word.isdigit():
        return not (before and before[-1].lower() in ("most", "least"))
    return bool(_OF_AN_INSTANCE.search(word))


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
