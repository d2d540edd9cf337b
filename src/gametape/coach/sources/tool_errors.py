"""Answers that say what went wrong, at once or turns later."""

from collections.abc import Iterator

from gametape.coach.hints import rule_of
from gametape.coach.sources.blame import Told, blamed
from gametape.coach.target import Target
from gametape.coach.turns import Case, Turn
from gametape.coach.wording import complaints, names_in
from gametape.engines.conversation import Answer

_LONGEST_EVIDENCE = 300


def tool_errors(case: Case) -> Iterator[Target]:
    """Failed answers of tools that did run. What the harness itself refused is on the record as an event."""
    told = [
        Told(turn, answer, complaint)
        for turn in case.turns
        for answer in turn.answers
        if answer.failed and not _is_an_event(turn, answer)
        for complaint in complaints(answer.content, answer.call.name)
    ]
    for one, turn in zip(told, blamed(case.turns, told), strict=True):
        names = names_in(turn.calls) | names_in([one.answer.call])
        kind, hint = rule_of(one.complaint, names, case.known)
        yield Target(
            step=turn.step.step_id,
            turn=turn.number,
            source="tool_error",
            type=kind,
            hint=hint,
            evidence=" ".join(one.answer.content.split())[:_LONGEST_EVIDENCE],
            noticed=one.turn.step.step_id,
        )


def _is_an_event(turn: Turn, answer: Answer) -> bool:
    line = " ".join(answer.content.split())
    return any(line.startswith(" ".join(str(event.get("detail", "\0")).split())) for event in turn.events)
