"""Counts a call that is made again and again with the same result: rules that need no baseline.

A living agent hears of the third time (`RepeatedCalls`). In a log five times running, with nothing in between, are an
alarm (`RepeatedSteps`).

A poll whose result changes is no repetition, and neither is a test run after each of several edits: between the first
and the third occurrence there must be nothing that happened only once.
"""

import re
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator

from gametape.core.step import Step
from gametape.watch.monitors.monitor import Evidence
from gametape.watch.normalised import normalised
from gametape.watch.observed_step import ObservedAction, ObservedStep, plain_text

TIMES = 3
"""An agent is told of the third occurrence, and again after 3, 6, 12, ... more."""
IN_A_ROW = 5
"""So many steps in a row that do the same with the same result are an alarm; so are twice, four times ... as many."""
REPEATED = "repeated call"
"""The name of the alarm about one call that is made again and again with the same result."""
WAITS_IN_A_ROW = 20
"""The same for what waits, or asks how something is getting on."""
_REMEMBERED = 60
_MOST_SESSIONS = 64
_DURATION = re.compile(r"\bin \d+(?:\.\d+)? ?(?:m?s|seconds)\b")
"""How long it took, which differs between runs that are the same."""


class RepeatedCalls:
    """Takes in the steps of one agent."""

    def __init__(self) -> None:
        self._calls: deque[int] = deque(maxlen=_REMEMBERED)
        self._in_loop = 0
        self._next = 1

    def update(self, step: Step) -> Evidence | None:
        """The evidence, where the agent should be told of a repetition now; else None."""
        told = None
        for action, result in _calls(step):
            self._calls.append(hash((action, result)))
            self._in_loop = self._in_loop + 1 if self._is_repeated() else 0
            if self._in_loop == 0:
                self._next = 1
            elif self._in_loop == self._next:
                self._next = 2 * self._next + 2
                times = self._calls.count(self._calls[-1])
                told = {"call": f"{action.tool} {action.arguments}"[:200], "times": times}
        return told

    def _is_repeated(self) -> bool:
        """Whether the last call was there twice before, and nothing between is there only once."""
        calls = list(self._calls)
        at = [number for number, call in enumerate(calls) if call == calls[-1]]
        if len(at) < TIMES:
            return False
        return min(Counter(calls[at[-TIMES] :]).values()) > 1


def _calls(step: Step) -> Iterator[tuple[ObservedAction, str]]:
    """Each call of a step with its own result."""
    if step.source != "agent":
        return
    observed = step.observation.results if step.observation else []
    results = {result.source_call_id: plain_text(result.content) for result in observed}
    for call in step.tool_calls or []:
        result = _DURATION.sub("in 0 s", results.get(call.tool_call_id, ""))
        yield ObservedAction.of(call.function_name, call.arguments), result


class RepeatedSteps:
    """Takes in the steps of a log, whose sessions may take turns. What a step says is not compared."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str | None, tuple[int, int]] = OrderedDict()
        """By session: what was done last, and how often in a row."""

    def update(self, step: ObservedStep) -> Evidence | None:
        """The evidence, where there is an alarm at this step; else None."""
        did = hash((step.actions, _DURATION.sub("in 0 s", step.result or "")))
        last, times = self._sessions.get(step.session, (0, 0))
        times = 0 if not step.actions else times + 1 if did == last else 1
        self._sessions[step.session] = (did, times)
        self._sessions.move_to_end(step.session)
        if len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        if times < IN_A_ROW:
            return None
        rounds, rest = divmod(times, WAITS_IN_A_ROW if normalised(step).waits else IN_A_ROW)
        if not rounds or rest or rounds & (rounds - 1):
            return None
        return {"call": f"{step.actions[0].tool} {step.actions[0].arguments}"[:200], "times": times}
