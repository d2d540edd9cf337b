"""What a rollout has done so far, step by step: what a fresh context is made of after compaction.

Only the latest entries of each kind are kept, and how many there were, for more than that never fits into a context.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gametape.agent.recorded_steps import message_key, recorded_answers, step_text
from gametape.core.step import Step
from gametape.engines.conversation import ToolResponse

MOST_CHARACTERS = 24_000
"""The most characters that a fresh context has beside the instruction; of each kind of entry, this much is kept."""
_READ_ONLY_TOOLS = frozenset({"read", "search", "jump", "recall", "history", "semantic_search"})
_LONGEST_LINE = 160
_FAILED = re.compile(r"^\[(exit code \d+|the command was ended: .*)\]$", re.MULTILINE)


@dataclass
class LatestEntries:
    """The latest of some entries, the oldest first, and how many there were in all."""

    entries: list[str] = field(default_factory=list)
    count: int = 0
    characters: int = 0

    def add(self, entry: str) -> None:
        self.entries.append(entry)
        self.count += 1
        self.characters += len(entry)
        while self.characters - len(self.entries[0]) > MOST_CHARACTERS:
            self.characters -= len(self.entries.pop(0))

    def text(self, room: int) -> str:
        """As many of the latest entries as fit. The last one is always there, cut if need be."""
        latest: list[str] = []
        for entry in reversed(self.entries):
            if latest and sum(map(len, latest)) + len(entry) > room:
                latest.append(f"(and {self.count - len(latest)} earlier)")
                break
            latest.append(cut(entry, room))
        return "\n".join(reversed(latest))


@dataclass
class ProgressLog:
    """The entries of a record. `turns` counts all replies of the model, those to requests for a summary too."""

    turns: int = 0
    done: LatestEntries = field(default_factory=LatestEntries)
    failed: LatestEntries = field(default_factory=LatestEntries)
    asked: LatestEntries = field(default_factory=LatestEntries)
    """What a person asked after the first message, in a thread."""
    messages: int = 0
    last_words: str = ""
    """The agent's."""

    @classmethod
    def of(cls, steps: Iterable[Step]) -> "ProgressLog":
        log = cls()
        for step in steps:
            log.add(step)
        return log

    def add(self, step: Step) -> None:
        if step.source == "user" and message_key(step):
            self.messages += 1
            if self.messages > 1:
                self.asked.add(step_text(step))
        if step.source != "agent":
            return
        self.turns += 1
        self.last_words = step_text(step).strip() or self.last_words
        for answer in recorded_answers(step)[0]:
            if answer.failed or _went_wrong(answer):
                self.failed.add(f"turn {self.turns}: {_call_text(answer)} -> {_last_line(answer.content)}")
            elif answer.call.name not in _READ_ONLY_TOOLS:
                self.done.add(f"turn {self.turns}: {_call_text(answer)}")


def turns_as_text(steps: Sequence[Step], last_number: int, max_characters: int) -> LatestEntries:
    """Turns in full. The last of them has this number."""
    entries = LatestEntries()
    for number, step in enumerate(steps, start=last_number - len(steps) + 1):
        entries.add(_in_full(number, step, max_characters))
    return entries


def _in_full(number: int, step: Step, max_characters: int) -> str:
    answers, notices = recorded_answers(step)
    parts = [f"turn {number}: {step_text(step).strip()[:max_characters]}".rstrip()]
    for answer in answers:
        call, output = _call_text(answer, max_characters), cut(answer.content, max_characters)
        parts.append(f"you called {call}, which has been run and answered:\n{output}")
    parts += [f"you were told: {cut(notice, max_characters)}" for notice in notices]
    return "\n".join(parts)


def _call_text(answer: ToolResponse, max_characters: int = _LONGEST_LINE) -> str:
    arguments = json.dumps(answer.call.arguments, ensure_ascii=False)
    return f"{answer.call.name} {cut(arguments, max_characters)}"


def _went_wrong(answer: ToolResponse) -> bool:
    """Whether a command failed or was ended; the shell tool says so on a line of its own."""
    return answer.call.name == "shell" and _FAILED.search(answer.content) is not None


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return cut(lines[-1], _LONGEST_LINE) if lines else "no output"


def cut(text: str, max_characters: int) -> str:
    if len(text) <= max_characters:
        return text
    half = max(1, max_characters // 2)
    return f"{text[:half]} [... {len(text) - 2 * half} characters dropped ...] {text[-half:]}"
