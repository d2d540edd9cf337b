"""All candidates of a finished rollout, from everything that shows a fault by itself."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from gametape.coach.sources.events import events
from gametape.coach.sources.integrity import accusations
from gametape.coach.sources.messages import messages
from gametape.coach.sources.monitors import monitors
from gametape.coach.sources.repetition import repetition
from gametape.coach.sources.tool_errors import tool_errors
from gametape.coach.sources.verdicts import verdicts
from gametape.coach.target import Target
from gametape.coach.turns import Case, action_span
from gametape.engines.dialect import Dialect

SOURCES: Sequence[Callable[[Case], Iterable[Target]]] = (
    accusations,
    tool_errors,
    events,
    messages,
    verdicts,
    repetition,
    monitors,
)
"""Where several find fault with one turn, the first speaks."""


def located(case: Case, dialect: Dialect | None = None) -> list[Target]:
    """At most one for each turn, in the order of turns; with their spans where a dialect is given. Turns that a fork
    has from another rollout are not among them."""
    found: dict[int, Target] = {}
    for source in SOURCES:
        for target in source(case):
            found.setdefault(target.turn, target)
    own = (found[turn.number] for turn in case.turns if turn.number in found and not turn.step.is_copied_context)
    return [spanned(target, case, dialect) for target in own] if dialect else list(own)


def spanned(target: Target, case: Case, dialect: Dialect) -> Target:
    turn = case.at(target.step)
    return replace(target, span=action_span(turn, dialect) if turn else None)
