"""All candidates of a finished rollout, from everything that shows a fault by itself."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from gametape.coach.evidence import EpisodeEvidence, HintCandidate, action_span
from gametape.coach.sources.error_messages import candidates_from_error_output
from gametape.coach.sources.events import candidates_from_events
from gametape.coach.sources.repetition import candidates_from_alarms, candidates_from_repetition
from gametape.coach.sources.tool_errors import candidates_from_tool_errors
from gametape.coach.sources.verdicts import candidates_from_flags, candidates_from_verdict
from gametape.engines.chat_formats.protocol import ChatFormat

CANDIDATE_SOURCES: Sequence[Callable[[EpisodeEvidence], Iterable[HintCandidate]]] = (
    candidates_from_flags,
    candidates_from_tool_errors,
    candidates_from_events,
    candidates_from_error_output,
    candidates_from_verdict,
    candidates_from_repetition,
    candidates_from_alarms,
)
"""Where several find fault with one turn, the first speaks."""


def locate_candidates(case: EpisodeEvidence, dialect: ChatFormat | None = None) -> list[HintCandidate]:
    """At most one for each turn, in the order of turns; with their spans where a dialect is given. Turns that a fork
    has from another rollout are not among them."""
    found: dict[int, HintCandidate] = {}
    for source in CANDIDATE_SOURCES:
        for target in source(case):
            found.setdefault(target.turn, target)
    own = (found[turn.number] for turn in case.turns if turn.number in found and not turn.step.is_copied_context)
    return [with_action_span(target, case, dialect) for target in own] if dialect else list(own)


def with_action_span(target: HintCandidate, case: EpisodeEvidence, dialect: ChatFormat) -> HintCandidate:
    turn = case.turn_at_step(target.step)
    return replace(target, span=action_span(turn, dialect) if turn else None)
