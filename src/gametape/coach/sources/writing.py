"""Which turn wrote a file."""

from collections.abc import Sequence

from gametape.coach.target import Target
from gametape.coach.turns import Turn
from gametape.core.hint import Source
from gametape.engines.conversation import Call

_READERS = frozenset({"read", "search", "jump", "check", "history", "semantic_search"})
_LONGEST_EVIDENCE = 300


def writer(turns: Sequence[Turn], path: str, until: Turn | None = None) -> Turn | None:
    """The last turn, up to one of them, whose successful call gave this file new content."""
    past = [turn for turn in turns if until is None or turn.number <= until.number]
    return next((turn for turn in reversed(past) if any(_wrote(call, path) for call in _done(turn))), None)


def named(at: Turn, noticed: Turn, source: Source, kind: str, hint: str, evidence: str) -> Target:
    told = " ".join(evidence.split())[:_LONGEST_EVIDENCE]
    return Target(at.step.step_id, at.number, source, kind, hint, told, noticed.step.step_id)


def _done(turn: Turn) -> list[Call]:
    return [answer.call for answer in turn.answers if not answer.failed]


def _wrote(call: Call, path: str) -> bool:
    given = call.arguments.get("path")
    if call.name in _READERS or not isinstance(given, str) or len(call.arguments) < 2:
        return False
    given = given.removeprefix("/workspace/").removeprefix("./")
    return bool(given) and (path == given or path.endswith(f"/{given}"))
