"""Candidates from failed tool calls: answers that report a mistake, at once or turns later."""

from collections.abc import Iterator

from gametape.coach.complaints import argument_names, parse_complaints
from gametape.coach.evidence import EpisodeEvidence, HintCandidate, RecordedTurn
from gametape.coach.hints import hint_from_complaint
from gametape.coach.sources.attribution import ReportedComplaint, blame_turns
from gametape.engines.conversation import ToolResponse

_LONGEST_EVIDENCE = 300


def candidates_from_tool_errors(evidence: EpisodeEvidence) -> Iterator[HintCandidate]:
    """Failed answers of tools that did run. What the harness itself refused is recorded as an event."""
    reports = [
        ReportedComplaint(turn, answer, complaint)
        for turn in evidence.turns
        for answer in turn.answers
        if answer.failed and not _is_an_event(turn, answer)
        for complaint in parse_complaints(answer.content, answer.call.name)
    ]
    for report, turn in zip(reports, blame_turns(evidence.turns, reports), strict=True):
        names = argument_names(turn.calls) | argument_names([report.answer.call])
        kind, hint = hint_from_complaint(report.complaint, names, evidence.tool_words)
        yield HintCandidate(
            step=turn.step.step_id,
            turn=turn.number,
            source="tool_error",
            type=kind,
            text=hint,
            evidence=" ".join(report.answer.content.split())[:_LONGEST_EVIDENCE],
            noticed_step=report.turn.step.step_id,
        )


def _is_an_event(turn: RecordedTurn, answer: ToolResponse) -> bool:
    line = " ".join(answer.content.split())
    return any(line.startswith(" ".join(str(event.get("detail", "\0")).split())) for event in turn.events)
