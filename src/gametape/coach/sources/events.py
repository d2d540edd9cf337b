"""Candidates from the harness's events: calls that could not be parsed or run, turns without a call, constraints."""

from collections.abc import Iterator

from gametape.coach.evidence import EpisodeEvidence, HintCandidate, RecordedTurn
from gametape.coach.hints import (
    ANOTHER_WAY,
    CALL_A_TOOL,
    CONSTRAINTS,
    ONE_CALL,
    SAY_LESS,
    hint_for_arguments,
    hint_for_unknown_tool,
)
from gametape.core.hint import HintSource

_FIXED = {
    "malformed_call": ONE_CALL,
    "no_call": CALL_A_TOOL,
    "cut_off": SAY_LESS,
    "too_many_calls": "rule : one call in a turn is enough",
    "call_limit": ANOTHER_WAY,
    "constraint": CONSTRAINTS,
    "tool_timeout": "rule : a call must end soon ; do less in one call",
}
"""Other events are no mistake of the policy."""


def candidates_from_events(evidence: EpisodeEvidence) -> Iterator[HintCandidate]:
    for turn in evidence.turns:
        for event in turn.events:
            kind, detail = str(event.get("kind")), str(event.get("detail", ""))
            if hint := _hint(evidence, turn, kind, detail):
                source: HintSource = "policy" if kind == "constraint" else "tool_error"
                step_id = turn.step.step_id
                yield HintCandidate(
                    step_id,
                    turn.number,
                    source,
                    _type(turn, kind, detail),
                    hint,
                    detail[:300],
                    noticed_step=step_id,
                    author="rule",
                )


def _type(turn: RecordedTurn, kind: str, detail: str) -> str:
    """Wrong arguments are pooled by tool."""
    event_type = kind.replace("_", " ")
    return f"{event_type} {_tool_in(turn, detail)}" if kind == "wrong_arguments" else event_type


def _hint(evidence: EpisodeEvidence, turn: RecordedTurn, kind: str, detail: str) -> str:
    if kind == "unknown_tool":
        return hint_for_unknown_tool(evidence.tools)
    if kind == "wrong_arguments":
        name = _tool_in(turn, detail)
        tool = next((tool for tool in evidence.tools if tool["name"] == name), None)
        return hint_for_arguments(tool) if tool else ""
    return _FIXED.get(kind, "")


def _tool_in(turn: RecordedTurn, detail: str) -> str:
    """The tool of the call that the event is about."""
    names = [call.name for call in turn.calls]
    return next((name for name in names if detail.startswith(f"{name}:")), names[0] if names else "")
