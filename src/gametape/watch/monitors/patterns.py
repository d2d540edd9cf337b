"""Known tics and refusals, found by regular expressions."""

import re
from collections.abc import Sequence

from gametape.watch.monitors.monitor import Evidence, Examples
from gametape.watch.observed_step import ObservedStep

TICS = (
    r"\\boxed\{",
    r"as an ai\b",
    r"you['’]re (?:absolutely|completely) right\b",
    r"great question\b",
    r"i hope this helps\b",
    r"<\|[a-z_]+\|>",
    r"</?think>",
)
REFUSALS = (
    r"i (?:can['’]t|cannot|won['’]t|will not) (?:continue|proceed|complete|finish|help|assist|do (?:this|that|it))\b",
    r"i (?:am|was) (?:unable|not able) to\b",
    r"i (?:won['’]t|will not) be able to\b",
    r"i (?:don['’]t|do not) (?:think|believe) i can\b",
    r"i (?:must|have to|need to) (?:respectfully decline|stop here)\b",
    r"i['’]m (?:unable|not able|not comfortable|sorry, but|giving up|done|stuck)\b",
    r"i (?:give up|have given up|am giving up|quit|refuse|decline|must decline|am done|am stuck)\b",
    r"nothing (?:more|left|further|else) (?:i can|to|for me to) do\b",
    r"no further (?:action|work) (?:is )?(?:needed|required|possible)\b",
)
"""All in lower case, as the text is, and each beginning with something literal: that is what makes a search fast."""


class Patterns:
    """Whether one of the patterns occurs in the text, in any case."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [
            re.compile(pattern, re.IGNORECASE if pattern.lower() != pattern else 0) for pattern in patterns
        ]
        self._examples = Examples()
        self._match = ""

    def update(self, step: ObservedStep) -> float | None:
        if step.silent:
            return None
        text = step.text.lower()
        for pattern in self._patterns:
            match = pattern.search(text)
            if match is not None:
                self._match = match[0]
                self._examples.add(step.text)
                return 1.0
        return 0.0

    def evidence(self) -> Evidence:
        return {"pattern": self._match, "examples": self._examples.texts}
