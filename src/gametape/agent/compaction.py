"""Compaction: replace a full conversation by a short one that says what was done and what is next.

The first try drops old tool output. The second asks the model for a summary, if there is room to ask. Both keep the
system prompt, the instruction and a progress summary that is made from the record. The new context must be at least
three tenths smaller; after two tries the rollout ends instead of compacting for ever.
"""

from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass

from gametape.agent.progress_log import MOST_CHARACTERS, LatestEntries, ProgressLog, turns_as_text
from gametape.agent.recorded_steps import step_text
from gametape.agent.recorder import StepRecorder
from gametape.agent.replay import active_record
from gametape.core.step import Step
from gametape.engines.conversation import Conversation, ToolDefinition


@dataclass(frozen=True)
class ProgressSummary:
    """The sections of a fresh context that come from the record."""

    progress: ProgressLog
    last_turns: LatestEntries
    """The latest turns in full."""

    def text(self, files: str, summary: str, room: int) -> str:
        """All sections in at most about `room` characters. Each keeps its latest entries."""
        progress = self.progress
        sections = [
            ("Summary of the work so far", summary),
            ("Done (do not run or write any of this again)", progress.done.text(room // 4)),
            ("Tried and failed", progress.failed.text(room // 6)),
            ("Files in hand", files[: room // 4]),
            ("The last turns", self.last_turns.text(room // 3)),
            ("What you said last", progress.last_words[: max(200, room // 12)]),
            ("What you were asked since, the last of it just now", progress.asked.text(room // 3)),
        ]
        body = "\n\n".join(f"## {title}\n{text}" for title, text in sections if text.strip())
        return f"{_HEADER}\n\n{body}"


_HEADER = (
    "The conversation so far was compacted to make room. The workspace is exactly as you left it. "
    "Go on from here; nothing that is listed as done has to be done again."
)


@dataclass(frozen=True)
class CompactionSource:
    """What the record gives to a fresh context: the prompts it began with, its latest turns, and its progress."""

    system: str
    instruction: str
    turns: tuple[Step, ...]
    progress: ProgressLog

    @classmethod
    def of(cls, recorder: StepRecorder) -> "CompactionSource":
        """Of what is recorded now. Of the steps only the first and the last ones are looked at, unless there was a
        rewind."""
        steps = active_record(recorder)
        progress = ProgressLog.of(steps) if recorder.digest.rewound else recorder.digest.progress
        system, instruction = (
            next(step_text(step) for step in steps if step.source == source) for source in ("system", "user")
        )
        turns: list[Step] = []
        for step in reversed(steps):
            turns += [step] if step.source == "agent" else []
            if len(turns) == _TURNS_IN_FULL:
                break
        return cls(system, instruction, tuple(reversed(turns)), deepcopy(progress))

    def summarize(self, turns_in_full: int, max_characters: int) -> ProgressSummary:
        """Tool output in the last turns is cut to `max_characters`."""
        last = turns_as_text(self.turns[-turns_in_full:], self.progress.turns, max_characters)
        return ProgressSummary(self.progress, last)


_TURNS_IN_FULL = 6
MAX_COMPACTED_SHARE = 0.7
SUMMARY_TOKENS = 400
SUMMARY_REQUEST = (
    "The conversation is about to be compacted. In at most ten lines: what is done, what you found out, what remains "
    "to do. Do not call a tool."
)
_FIRST_TRY_SHARES = (1.0, 0.6)
"""Shares of `MOST_CHARACTERS` that are tried, the fullest first."""
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

    source: CompactionSource
    files: str
    summary: str = ""
    turns_in_full: int = _TURNS_IN_FULL

    def text(self, room: int) -> str:
        progress = self.source.summarize(self.turns_in_full, max(200, room // (2 * self.turns_in_full)))
        return progress.text(self.files, self.summary, room)


async def compact_context(
    conversation: Conversation,
    recorder: StepRecorder,
    tools: Sequence[ToolDefinition],
    files: str,
    max_tokens: int,
    request_summary: Callable[[], Awaitable[str]],
) -> CompactedContext | None:
    """A context of at most `max_tokens` that continues after this record; None if two tries give none."""
    source = CompactionSource.of(recorder)
    fresh = _fitting(conversation, tools, ContextSections(source, files), max_tokens, _FIRST_TRY_SHARES)
    if fresh is None:
        sections = ContextSections(source, files, await request_summary(), turns_in_full=2)
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
    system, instruction = sections.source.system, sections.source.instruction
    trial = conversation.fork()
    for share in shares:
        text = f"{instruction}\n\n{sections.text(int(MOST_CHARACTERS * share))}"
        trial.begin(system, tools, text)
        if trial.length <= max_tokens:
            return CompactedContext(system, text, trial.length)
    return None
