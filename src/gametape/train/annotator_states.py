"""What annotators of several samplers know, put together."""

from collections.abc import Mapping
from typing import Any

from gametape.coach.statistics import appended


def add_news(known: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """`known`, and what has come between two states of one annotator: numbers add up, lists grow by what was appended,
    and of anything else the latest counts."""
    return {**known, **{name: _combined(known.get(name), before.get(name), value) for name, value in after.items()}}


def _combined(known: Any, before: Any, after: Any) -> Any:
    if isinstance(after, Mapping):
        return add_news(known or {}, before or {}, after)
    if isinstance(after, bool) or known is None:
        return after if after != before or known is None else known
    if isinstance(after, int | float):
        return known + after - (before or 0)
    if isinstance(after, list):
        return [*known, *appended(before or [], after)]
    return known if after == before else after
