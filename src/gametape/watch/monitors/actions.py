"""Monitors of actions: silent tool calls and spending."""

from collections import deque

from gametape.watch.monitors.monitor import Evidence
from gametape.watch.observed_step import ObservedStep


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
