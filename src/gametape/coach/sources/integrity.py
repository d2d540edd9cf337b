"""Accusations: attempts to be rewarded without the work."""

from collections.abc import Iterator

from gametape.coach.hints import OWN_WORK
from gametape.coach.sources.writing import named, writer
from gametape.coach.target import Target
from gametape.coach.turns import Case


def accusations(case: Case) -> Iterator[Target]:
    """The hint does not say which rule caught it: whoever is told learns to go round it."""
    for flag in case.flags:
        at = case.at(flag.step) if flag.step else writer(case.turns, flag.file) if flag.file else None
        if at is not None:
            yield named(at, at, "integrity", flag.rule.partition(".")[0], OWN_WORK, f"{flag.rule}: {flag.evidence}")
