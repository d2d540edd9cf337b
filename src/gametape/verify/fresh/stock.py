"""Answered calls that are kept for a while: to answer one costs more than to ask it.

A set is chosen at random from a stock of a few times as many calls. No call is in more than a few sets. What a stock
begins with may have been drawn by another process, which then uses none of it.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from gametape.verify.fresh.bundles import FreshCall, take_turns
from gametape.verify.fresh.source import FreshSource
from gametape.verify.fresh.stored_calls import CallSet

_MOST_USES = 8
_SETS_AHEAD = 3
"""Where less than so many sets are in stock, calls are drawn before one is taken."""


@dataclass
class _StockedCall:
    call: FreshCall
    uses: int = 0


class CallStock:
    """The calls of one source. Not thread-safe."""

    def __init__(self, source: FreshSource, calls: Sequence[FreshCall] = ()) -> None:
        self._source = source
        self._chance = secrets.SystemRandom()
        self._calls = [_StockedCall(call) for call in calls]
        self._begun_with = len(calls)

    def take(self) -> list[FreshCall]:
        """A set of calls, drawn from secrets."""
        wanted = self._source.calls
        least = wanted * _SETS_AHEAD
        if self._begun_with:  # what was drawn for it may be as many as there are
            least = min(least, max(wanted, self._begun_with))
        if len(self._calls) < least:
            self._calls += map(_StockedCall, self._draw(wanted if self._calls else wanted * _SETS_AHEAD))
        chosen = {id(call) for call in take_turns([one.call for one in self._calls], wanted, self._chance)}
        taken = [one for one in self._calls if id(one.call) in chosen]
        for one in taken:
            one.uses += 1
        self._calls = [one for one in self._calls if one.uses < _MOST_USES]
        self._chance.shuffle(taken)
        return [one.call for one in taken]

    def draw_for_others(self) -> CallSet:
        """What another stock begins with; this one does not use it."""
        return CallSet(self._source.calls, tuple(self._draw(self._source.calls * _SETS_AHEAD)))

    def _draw(self, count: int) -> list[FreshCall]:
        return self._source.draw(secrets.randbits(62), count)
