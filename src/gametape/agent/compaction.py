"""Make room in a conversation without losing where it stands.

First old tool output goes; if that is not enough, the model is asked for a summary while there is still room to ask.
Either way the fresh context holds the instruction, the standing instructions and the frontier. It must be smaller by
three tenths at least; that is tried twice, and then the rollout ends instead of compacting for ever.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from gametape.agent.frontier import frontier_of
from gametape.agent.recording import text_of
from gametape.core.step import Step
from gametape.engines.conversation import Conversation, ToolDefinition

MUST_SHRINK_TO = 0.7
SUMMARY_TOKENS = 400
ASK_FOR_SUMMARY = (
    "The conversation is about to be compacted. In at most ten lines: what is done, what you found out, what remains "
    "to do. Do not call a tool."
)
_FULLEST = 24_000
"""Characters beside the instruction; a fresh context has no use for more."""
_GENEROUS = (1.0, 0.6)
"""How full the first try is: old tool output is dropped, and nothing else of weight."""
_BARE = (1.0, 0.6, 0.35, 0.2, 0.1, 0.05)


@dataclass(frozen=True)
class Fresh:
    """The texts that begin the compacted conversation, and how long that is in tokens."""

    system: str
    text: str
    length: int


@dataclass(frozen=True)
class Sections:
    """What a fresh context is made of, beside the instruction."""

    line: Sequence[Step]
    files: str
    summary: str = ""
    turns_in_full: int = 6

    def text(self, room: int) -> str:
        frontier = frontier_of(self.line, self.turns_in_full, most=max(200, room // (2 * self.turns_in_full)))
        return frontier.text(self.files, self.summary, room)


async def fresh_context(
    conversation: Conversation,
    line: Sequence[Step],
    tools: Sequence[ToolDefinition],
    files: str,
    most_tokens: int,
    summary: Callable[[], Awaitable[str]],
) -> Fresh | None:
    """A context of at most so many tokens that goes on where this line of steps ends; None after two tries."""
    fresh = _fitting(conversation, tools, Sections(line, files), most_tokens, _GENEROUS)
    if fresh is None:
        sections = Sections(line, files, await summary(), turns_in_full=2)
        fresh = _fitting(conversation, tools, sections, most_tokens, _BARE)
    return fresh


def _fitting(
    conversation: Conversation,
    tools: Sequence[ToolDefinition],
    sections: Sections,
    most_tokens: int,
    shares: Sequence[float],
) -> Fresh | None:
    """The fullest of at most so many tokens; None if none of these shares fits. Nothing is sent."""
    system, opening = (_first(sections.line, source) for source in ("system", "user"))
    trial = conversation.fork()
    for share in shares:
        text = f"{opening}\n\n{sections.text(int(_FULLEST * share))}"
        trial.begin(system, tools, text)
        if trial.length <= most_tokens:
            return Fresh(system, text, trial.length)
    return None


def _first(line: Sequence[Step], source: str) -> str:
    return next(text_of(step) for step in line if step.source == source)
