"""What a writer of hints is, and which writers a model can read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from gametape.coach.evidence import EpisodeEvidence, HintCandidate
from gametape.core.hint import HintAuthor

_REWRITTEN = ("message", "rule")
"""What a person or a judge has said about a turn stays as it is."""


@dataclass(frozen=True)
class WrittenLine:
    """One line, empty where the writer has none; and how many tokens it took."""

    text: str
    tokens: int = 0


class HintWriter(Protocol):
    """Puts a located fault into words. `name` is unique among all requests of a run."""

    @property
    def author(self) -> HintAuthor: ...

    async def write(self, candidate: HintCandidate, evidence: EpisodeEvidence, name: str) -> WrittenLine: ...


async def write_hint(
    candidate: HintCandidate, evidence: EpisodeEvidence, writers: Sequence[HintWriter], name: str
) -> tuple[HintCandidate, int]:
    """The candidate in the words of the first writer that has some, and the tokens that all of them took."""
    tokens = 0
    for writer in writers if candidate.author in _REWRITTEN else ():
        line = await writer.write(candidate, evidence, f"{name}/{candidate.step}")
        tokens += line.tokens
        if line.text:
            return replace(candidate, text=line.text, author=writer.author), tokens
    return candidate, tokens
