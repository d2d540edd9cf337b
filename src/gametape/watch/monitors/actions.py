"""Monitors of actions: silent tool calls, loops that succeed each time, spending."""

import re
from collections import OrderedDict, deque

from gametape.watch.monitors.monitor import Evidence, Examples
from gametape.watch.observed_step import ObservedStep

_LOOP = 20
"""A repetition within so many steps is a loop."""
_CLOCK = re.compile(r"\d+(?:[.:]\d+)+|\d+ ?m?s\b")
"""Times and durations, which differ in results that are the same."""
_MOST_READ = 2000
_MOST_SESSIONS = 64
"""At most so many sessions of one stream are remembered."""


class Silence:
    """Whether a step says nothing."""

    def __init__(self) -> None:
        self._tools: deque[str] = deque(maxlen=5)

    def update(self, step: ObservedStep) -> float | None:
        if not step.silent:
            return 0.0
        self._tools.append(step.actions[0].tool if step.actions else "")
        return 1.0

    def evidence(self) -> Evidence:
        return {"tools": list(self._tools)}


class ActionLoop:
    """Whether a step repeats the actions of an earlier step of its session, with the same result."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str | None, deque[int]] = OrderedDict()
        self._done: deque[int] = deque(maxlen=_LOOP)
        self._examples = Examples()

    def update(self, step: ObservedStep) -> float | None:
        if not step.actions:
            return None
        did = hash((step.actions, _CLOCK.sub("0", (step.result or "")[:_MOST_READ])))
        self._done = self._in(step.session)
        again = did in self._done
        self._done.append(did)
        if again:
            first = step.actions[0]
            self._examples.add(f"{first.tool} {first.arguments}")
        return float(again)

    def _in(self, session: str | None) -> deque[int]:
        """The last actions of a session; the sessions that have been quiet for longest are forgotten."""
        done = self._sessions.setdefault(session, deque(maxlen=_LOOP))
        self._sessions.move_to_end(session)
        if len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return done

    def evidence(self) -> Evidence:
        return {"actions": sorted(set(self._examples.texts)), "different": len(set(self._done)), "of": len(self._done)}


class SpendRate:
    """What a step cost, in dollars once they are known, else in tokens; per second where there is a clock."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._in_dollars = False
        self._spent: deque[float] = deque(maxlen=5)

    def update(self, step: ObservedStep) -> float | None:
        self._in_dollars |= bool(step.cost)
        spent = step.cost if self._in_dollars else step.tokens
        before, self._last = self._last, step.time
        if not spent or spent < 0 or (step.time is not None and before is None):
            return None
        self._spent.append(float(spent))
        return float(spent) if step.time is None or before is None else float(spent) / max(1.0, step.time - before)

    def evidence(self) -> Evidence:
        return {"last": list(self._spent)}
