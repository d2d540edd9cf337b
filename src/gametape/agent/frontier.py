"""Where a rollout stands, taken from its record: what must survive when the conversation does not.

It is made from the steps alone, so nothing in it depends on a model's memory of what it did.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from gametape.agent.recording import answers_of, text_of
from gametape.core.step import Step
from gametape.engines.conversation import Answer

_LOOKING = frozenset({"read", "search", "jump", "recall", "history", "semantic_search"})
_LONGEST_LINE = 160
_FAILED = re.compile(r"^\[(exit code \d+|the command was ended: .*)\]$", re.MULTILINE)


@dataclass(frozen=True)
class Frontier:
    """The typed sections of a fresh context, oldest first in each."""

    done: tuple[str, ...]
    failed: tuple[str, ...]
    last_turns: tuple[str, ...]
    """The latest turns in full, as text."""
    next: str
    """What the agent said it was about to do."""
    asked: tuple[str, ...] = ()
    """What a person asked after the first words, where it is a conversation."""

    def text(self, files: str, summary: str, room: int) -> str:
        """All sections in at most about `room` characters: the latest of each are kept."""
        sections = [
            ("Summary of the work so far", summary),
            ("Done (do not run or write any of this again)", _latest(self.done, room // 4)),
            ("Tried and failed", _latest(self.failed, room // 6)),
            ("Files in hand", files[: room // 4]),
            ("The last turns", _latest(self.last_turns, room // 3)),
            ("What you said last", self.next[: max(200, room // 12)]),
            ("What you were asked since, the last of it just now", _latest(self.asked, room // 3)),
        ]
        told = "\n\n".join(f"## {title}\n{text}" for title, text in sections if text.strip())
        return f"{_HEADER}\n\n{told}"


_HEADER = (
    "The conversation so far was compacted to make room. The workspace is exactly as you left it. "
    "Go on from here; nothing that is listed as done has to be done again."
)


def frontier_of(line: Sequence[Step], turns_in_full: int = 3, most: int = 2_000) -> Frontier:
    """`line` is what the conversation consists of; answers in the last turns are cut to `most` characters."""
    turns = [step for step in line if step.source == "agent"]
    done, failed = [], []
    for number, step in enumerate(turns, start=1):
        for answer in answers_of(step)[0]:
            if answer.failed or _went_wrong(answer):
                failed.append(f"turn {number}: {_call_text(answer)} -> {_last_line(answer.content)}")
            elif answer.call.name not in _LOOKING:
                done.append(f"turn {number}: {_call_text(answer)}")
    first = max(0, len(turns) - turns_in_full)
    last = tuple(_in_full(number, step, most) for number, step in enumerate(turns[first:], start=first + 1))
    said = next((text_of(step).strip() for step in reversed(turns) if text_of(step).strip()), "")
    asked = [text_of(step) for step in line if step.source == "user" and (step.ours.model_extra or {}).get("key")]
    return Frontier(tuple(done), tuple(failed), last, said, tuple(asked[1:]))


def _in_full(number: int, step: Step, most: int) -> str:
    answers, notices = answers_of(step)
    parts = [f"turn {number}: {text_of(step).strip()[:most]}".rstrip()]
    for answer in answers:
        parts.append(
            f"you called {_call_text(answer, most)}, which has been run and answered:\n{_cut(answer.content, most)}"
        )
    parts += [f"you were told: {_cut(notice, most)}" for notice in notices]
    return "\n".join(parts)


def _call_text(answer: Answer, most: int = _LONGEST_LINE) -> str:
    arguments = json.dumps(answer.call.arguments, ensure_ascii=False)
    return f"{answer.call.name} {_cut(arguments, most)}"


def _went_wrong(answer: Answer) -> bool:
    """Whether a command failed or was ended: the shell tool says so on a line of its own."""
    return answer.call.name == "shell" and _FAILED.search(answer.content) is not None


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return _cut(lines[-1], _LONGEST_LINE) if lines else "no output"


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = max(1, most // 2)
    return f"{text[:half]} [... {len(text) - 2 * half} characters dropped ...] {text[-half:]}"


def _latest(entries: Sequence[str], room: int) -> str:
    """As many of the latest as fit; the very last is always there, cut if it must be."""
    kept: list[str] = []
    for entry in reversed(entries):
        if kept and sum(map(len, kept)) + len(entry) > room:
            kept.append(f"(and {len(entries) - len(kept)} earlier)")
            break
        kept.append(_cut(entry, room))
    return "\n".join(reversed(kept))
