"""Collects the candidates of a finished rollout from all sources that need no model."""

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
"""Where several sources have a candidate for one turn, the first source counts."""


def locate_candidates(evidence: EpisodeEvidence, chat_format: ChatFormat | None = None) -> list[HintCandidate]:
    """At most one candidate per turn, in the order of turns; with its span where a chat format is given. Turns that a
    fork copied from another rollout have none."""
    by_turn: dict[int, HintCandidate] = {}
    for source in CANDIDATE_SOURCES:
        for candidate in source(evidence):
            by_turn.setdefault(candidate.turn, candidate)
    own = (
        by_turn[turn.number] for turn in evidence.turns if turn.number in by_turn and not turn.step.is_copied_context
    )
    return [with_action_span(candidate, evidence, chat_format) for candidate in own] if chat_format else list(own)


def with_action_span(candidate: HintCandidate, evidence: EpisodeEvidence, chat_format: ChatFormat) -> HintCandidate:
    turn = evidence.turn_at_step(candidate.step)
    return replace(candidate, span=action_span(turn, chat_format) if turn else None)
