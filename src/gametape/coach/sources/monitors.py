"""Alarms of behaviour monitors, whoever ran them."""

from collections.abc import Iterator

from gametape.coach.hints import BREAK_OFF
from gametape.coach.sources.writing import named
from gametape.coach.target import Target
from gametape.coach.turns import Case


def monitors(case: Case) -> Iterator[Target]:
    for alarm in case.alarms:
        if at := case.at(alarm.step):
            yield named(at, at, "monitor", alarm.monitor, BREAK_OFF, alarm.evidence)
