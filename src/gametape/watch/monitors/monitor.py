"""What a monitor is."""

from typing import Any, Protocol

from gametape.watch.seen import Seen

Evidence = dict[str, Any]
WINDOW = 50
"""Earlier steps that a step is compared with."""
SENTENCE = 4
"""Words. Less is no sentence: repeated, it is a phrase."""
OFTEN = 4
"""Of the window: from here on a repetition is kept as an example."""


def of_a_window(count: int, filled: int) -> float | None:
    """A count as it would be in a full window; None while there are too few steps to tell."""
    return count * WINDOW / filled if filled >= 10 else None


class Monitor(Protocol):
    """One statistic of behaviour, a number for each step that grows as behaviour narrows.

    `update` compares a step with what came before it, in time and memory that do not grow with the log; None where the
    step says nothing about it. `evidence` is what a person should see when there is an alarm.
    """

    def update(self, step: Seen) -> float | None: ...

    def evidence(self) -> Evidence: ...


class Examples:
    """The last few texts that counted, cut to what fits on a line."""

    def __init__(self, most: int = 3, length: int = 240) -> None:
        self._most = most
        self._length = length
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        self.texts = [*self.texts[1 - self._most :], " ".join(text[: 4 * self._length].split())[: self._length]]
