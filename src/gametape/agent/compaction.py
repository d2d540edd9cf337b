"""Compaction: replace a full conversation by a short one that says what was done and what is next.

The first try drops old tool output. The second asks the model for a summary, if there is room to ask. Both keep the
system prompt, the instruction and a progress summary that is made from the record. The new context must be at least
three tenths smaller; after two tries the rollout ends instead of compacting for ever.
"""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from gametape.agent.recorder import recorded_answers, step_text
from gametape.core.step import Step
from gametape.engines.conversation import Conversation, ToolDefinition, ToolResponse

_READ_ONLY_TOOLS = frozenset({"read", "search", "jump", "recall", "history", "semantic_search"})
_LONGEST_LINE = 160
_FAILED = re.compile(r"^\[(exit code \d+|the command was ended: .*)\]$", re.MULTILINE)


@dataclass(frozen=True)
class ProgressSummary:
    """The sections of a fresh context that come from the record, oldest entry first."""

    done: tuple[str, ...]
    failed: tuple[str, ...]
    last_turns: tuple[str, ...]
    """The latest turns in full, as text."""
    next: str
    """The agent's last words."""
    asked: tuple[str, ...] = ()
    """What a person asked after the first prompt, in a thread."""

    def text(self, files: str, summary: str, room: int) -> str:
        """All sections in at most about `room` characters. Each keeps its latest entries."""
        sections = [
            ("Summary of the work so far", summary),
            ("Done (do not run or write any of this again)", _latest(self.done, room // 4)),
            ("Tried and failed", _latest(self.failed, room // 6)),
            ("Files in hand", files[: room // 4]),
            ("The last turns", _latest(self.last_turns, room // 3)),
            ("What you said last", self.next[: max(200, room // 12)]),
            ("What you were asked since, the last of it just now", _latest(self.asked, room // 3)),
        ]
        body = "\n\n".join(f"## {title}\n{text}" for title, text in sections if text.strip())
        return f"{_HEADER}\n\n{body}"


_HEADER = (
    "The conversation so far was compacted to make room. The workspace is exactly as you left it. "
    "Go on from here; nothing that is listed as done has to be done again."
)


def summarize_progress(steps: Sequence[Step], turns_in_full: int = 3, max_characters: int = 2_000) -> ProgressSummary:
    """From the active steps. Tool output in the last turns is cut to `max_characters`."""
    turns = [step for step in steps if step.source == "agent"]
    done, failed = [], []
    for number, step in enumerate(turns, start=1):
        for answer in recorded_answers(step)[0]:
            if answer.failed or _went_wrong(answer):
                failed.append(f"turn {number}: {_call_text(answer)} -> {_last_line(answer.content)}")
            elif answer.call.name not in _READ_ONLY_TOOLS:
                done.append(f"turn {number}: {_call_text(answer)}")
    first = max(0, len(turns) - turns_in_full)
    last = tuple(_in_full(number, step, max_characters) for number, step in enumerate(turns[first:], start=first + 1))
    last_words = next((step_text(step).strip() for step in reversed(turns) if step_text(step).strip()), "")
    asked = [
        step_text(step)
        for step in steps
        if step.source == "user" and (step.gametape_extra.model_extra or {}).get("key")
    ]
    return ProgressSummary(tuple(done), tuple(failed), last, last_words, tuple(asked[1:]))


def _in_full(number: int, step: Step, max_characters: int) -> str:
    answers, notices = recorded_answers(step)
    parts = [f"turn {number}: {step_text(step).strip()[:max_characters]}".rstrip()]
    for answer in answers:
        call, output = _call_text(answer, max_characters), _cut(answer.content, max_characters)
        parts.append(f"you called {call}, which has been run and answered:\n{output}")
    parts += [f"you were told: {_cut(notice, max_characters)}" for notice in notices]
    return "\n".join(parts)


def _call_text(answer: ToolResponse, max_characters: int = _LONGEST_LINE) -> str:
    arguments = json.dumps(answer.call.arguments, ensure_ascii=False)
    return f"{answer.call.name} {_cut(arguments, max_characters)}"


def _went_wrong(answer: ToolResponse) -> bool:
    """Whether a command failed or was ended; the shell tool says so on a line of its own."""
    return answer.call.name == "shell" and _FAILED.search(answer.content) is not None


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return _cut(lines[-1], _LONGEST_LINE) if lines else "no output"


def _cut(text: str, max_characters: int) -> str:
    if len(text) <= max_characters:
        return text
    half = max(1, max_characters // 2)
    return f"{text[:half]} [... {len(text) - 2 * half} characters dropped ...] {text[-half:]}"


def _latest(entries: Sequence[str], room: int) -> str:
    """As many of the latest entries as fit. The last one is always there, cut if need be."""
    latest: list[str] = []
    for entry in reversed(entries):
        if latest and sum(map(len, latest)) + len(entry) > room:
            latest.append(f"(and {len(entries) - len(latest)} earlier)")
            break
        latest.append(_cut(entry, room))
    return "\n".join(reversed(latest))


MAX_COMPACTED_SHARE = 0.7
SUMMARY_TOKENS = 400
SUMMARY_REQUEST = (
    "The conversation is about to be compacted. In at most ten lines: what is done, what you found out, what remains "
    "to do. Do not call a tool."
)
_MAX_CHARACTERS = 24_000
"""The most characters that a fresh context has beside the instruction."""
_FIRST_TRY_SHARES = (1.0, 0.6)
"""Shares of `_MAX_CHARACTERS` that are tried, the fullest first."""
_SECOND_TRY_SHARES = (1.0, 0.6, 0.35, 0.2, 0.1, 0.05)


@dataclass(frozen=True)
class CompactedContext:
    """The prompts that begin the compacted conversation, and its length in tokens."""

    system: str
    text: str
    length: int


@dataclass(frozen=True)
class ContextSections:
    """What a fresh context is made of, beside the instruction."""

    steps: Sequence[Step]
    files: str
    summary: str = ""
    turns_in_full: int = 6

    def text(self, room: int) -> str:
        progress = summarize_progress(
            self.steps, self.turns_in_full, max_characters=max(200, room // (2 * self.turns_in_full))
        )
        return progress.text(self.files, self.summary, room)


async def compact_context(
    conversation: Conversation,
    steps: Sequence[Step],
    tools: Sequence[ToolDefinition],
    files: str,
    max_tokens: int,
    request_summary: Callable[[], Awaitable[str]],
) -> CompactedContext | None:
    """A context of at most `max_tokens` that continues after these steps; None if two tries give none."""
    fresh = _fitting(conversation, tools, ContextSections(steps, files), max_tokens, _FIRST_TRY_SHARES)
    if fresh is None:
        sections = ContextSections(steps, files, await request_summary(), turns_in_full=2)
        fresh = _fitting(conversation, tools, sections, max_tokens, _SECOND_TRY_SHARES)
    return fresh


def _fitting(
    conversation: Conversation,
    tools: Sequence[ToolDefinition],
    sections: ContextSections,
    max_tokens: int,
    shares: Sequence[float],
) -> CompactedContext | None:
    """The fullest context that fits; None if none of these shares fits. Nothing is sent to the model."""
    system, instruction = (_first(sections.steps, source) for source in ("system", "user"))
    trial = conversation.fork()
    for share in shares:
        text = f"{instruction}\n\n{sections.text(int(_MAX_CHARACTERS * share))}"
        trial.begin(system, tools, text)
        if trial.length <= max_tokens:
            return CompactedContext(system, text, trial.length)
    return None


def _first(steps: Sequence[Step], source: str) -> str:
    return next(step_text(step) for step in steps if step.source == source)
