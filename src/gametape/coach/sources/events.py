"""What the harness put on record: calls that could not be read or run, turns without one, and what is forbidden."""

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
"""Whatever else is an event is no fault of the policy."""


def candidates_from_events(case: EpisodeEvidence) -> Iterator[HintCandidate]:
    for turn in case.turns:
        for event in turn.events:
            kind, detail = str(event.get("kind")), str(event.get("detail", ""))
            if hint := _hint(case, turn, kind, detail):
                source: HintSource = "policy" if kind == "constraint" else "tool_error"
                here = turn.step.step_id
                yield HintCandidate(
                    here, turn.number, source, _type(turn, kind, detail), hint, detail[:300], noticed_step=here
                )


def _type(turn: RecordedTurn, kind: str, detail: str) -> str:
    """Wrong arguments are pooled by tool."""
    told = kind.replace("_", " ")
    return f"{told} {_tool_in(turn, detail)}" if kind == "wrong_arguments" else told


def _hint(case: EpisodeEvidence, turn: RecordedTurn, kind: str, detail: str) -> str:
    if kind == "unknown_tool":
        return hint_for_unknown_tool(case.tools)
    if kind == "wrong_arguments":
        name = _tool_in(turn, detail)
        tool = next((tool for tool in case.tools if tool["name"] == name), None)
        return hint_for_arguments(tool) if tool else ""
    return _FIXED.get(kind, "")


def _tool_in(turn: RecordedTurn, detail: str) -> str:
    """Of several calls the one that the event is about."""
    names = [call.name for call in turn.calls]
    return next((name for name in names if detail.startswith(f"{name}:")), names[0] if names else "")
