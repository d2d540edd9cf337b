"""Loops: what a session did before, with nothing new in between; and sessions that do what an earlier one did."""

import re
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

from gametape.watch.monitors.monitor import Evidence, Examples
from gametape.watch.normalised import Course, NormalisedStep, normalised
from gametape.watch.observed_step import ObservedStep

REMEMBERED = 100
"""Steps of a session that a step is compared with."""
_MOST_SESSIONS = 64
"""At most so many sessions of one stream are remembered."""
_POLLS = 20
"""So often a number may rise that has no bound, as a counter or a size."""
_OFTEN, _LAST = 24, 32
"""One action in so many of the last steps is a habit, whatever came of it."""
_FAILURES = 6
"""The same failure on so many other files is no work on them."""
_SAME_FAILURES = 8
"""One tool that failed in the same way so often among the last steps is used in vain, whatever it was asked."""
_BATCH = 100
"""The same done to so many files in a row, with the same result, is no job any longer."""
_WAITS = 20
"""So often something may be asked for that has not changed yet."""
_PERIODS = range(3, 8)
_ROUND_STEPS = 16
_WRITES = re.compile(r"edit|write|patch|replace|create|insert|apply|commit")
"""Tools that change something: a round with one of them and other words is work."""
_SMALL = 5
"""Words by which an action may differ from the one a round before."""

State = TypeVar("State")


class Sessions(Generic[State]):
    """A state for each session; the sessions that have been quiet for longest are forgotten."""

    def __init__(self, make: Callable[[], State]) -> None:
        self._make = make
        self._states: OrderedDict[str | None, State] = OrderedDict()

    def of(self, session: str | None) -> State:
        if session not in self._states:
            self._states[session] = self._make()
            if len(self._states) > _MOST_SESSIONS:
                self._states.popitem(last=False)
        self._states.move_to_end(session)
        return self._states[session]


class _Done:
    """The last steps of one session."""

    def __init__(self) -> None:
        self.steps = 0
        self.states: OrderedDict[int, int] = OrderedDict()
        self.courses: OrderedDict[int, Course] = OrderedDict()
        self.files: OrderedDict[str, None] = OrderedDict()
        self.news: deque[bool] = deque(maxlen=REMEMBERED)
        self.actions: deque[frozenset[str]] = deque(maxlen=_LAST)
        self.heads: deque[tuple[str, ...]] = deque(maxlen=_LAST)
        self.patterns: deque[int] = deque(maxlen=_BATCH)
        self.failures: deque[int] = deque(maxlen=2 * _FAILURES)
        self.waits = 0


class ActionLoop:
    """Whether a step does what was done within the last hundred of its session, and hardly anything was new in between.

    Actions and results are compared as `watch/normalised.py` has them. It also counts when one action fills the last
    steps whatever its results are, when a round of tools goes on with other words at no new file, and when the same
    fails on one file after the other. A number that goes on towards a bound is progress, and so is another file.
    """

    def __init__(self) -> None:
        self._sessions = Sessions(_Done)
        self._done = _Done()
        self._examples = Examples()

    def update(self, step: ObservedStep) -> float | None:
        if not step.actions:
            return None
        done = self._done = self._sessions.of(step.session)
        form = normalised(step)
        at = done.states.get(form.state)
        done.waits = done.waits + 1 if form.waits else 0
        progress = self._progresses(done, form) or 0 < done.waits <= _WAITS
        seen = at is not None and not progress
        between = done.steps - at if at is not None else 0
        hardly_new = seen and 3 * sum(list(done.news)[len(done.news) - between :]) <= between
        new_file = bool(form.files) and any(file not in done.files for file in form.files)
        in_vain = (new_file and self._in_vain(done, form)) or done.failures.count(form.failure or 1) >= _SAME_FAILURES
        counts = hardly_new or in_vain or (not progress and self._is_habit(done, form, new_file))
        self._remember(done, form, news=not (seen or in_vain))
        if counts:
            self._examples.add(f"{step.actions[0].tool} {step.actions[0].arguments}")
        return float(counts)

    @staticmethod
    def _progresses(done: _Done, form: NormalisedStep) -> bool:
        """Whether a number goes on: towards a bound, which for a falling one is zero, or not for long yet."""
        for kind, numbers in (("result", form.measures), ("action", form.counts)):
            if not numbers:
                continue
            key = hash((kind, form.action, form.result if kind == "result" else None))
            course = done.courses.get(key)
            if course is None:
                done.courses[key] = Course(numbers)
                if len(done.courses) > 2 * REMEMBERED:
                    done.courses.popitem(last=False)
                continue
            done.courses.move_to_end(key)
            way = course.goes_on(numbers)
            if kind == "result" and way and (form.bounded or way < 0 or course.moves <= _POLLS):
                return True
        return False

    @staticmethod
    def _in_vain(done: _Done, form: NormalisedStep) -> bool:
        """Whether the same was done to other files: to no avail in most of the last steps, or for ever."""
        times = done.patterns.count(form.pattern)
        if form.failed and form.result and times >= _FAILURES:
            return list(done.patterns)[-2 * _FAILURES :].count(form.pattern) >= _FAILURES
        return times >= 0.95 * _BATCH

    @staticmethod
    def _is_habit(done: _Done, form: NormalisedStep, new_file: bool) -> bool:
        if new_file:
            return False
        if done.actions.count(form.action) >= _OFTEN:
            course = done.courses.get(hash(("action", form.action, None)))
            return course is None or course.moves < _OFTEN - 1 or not form.result
        heads = [*done.heads, form.head]
        for period in _PERIODS:
            long = max(_ROUND_STEPS, 3 * period)
            if len(heads) <= long or heads[-1] != heads[-1 - period]:
                continue
            last = heads[-long:]
            if last[period:] == last[:-period] and len(set(last[:period])) > 1:
                if any(_WRITES.search(tool.lower()) for head in last[:period] for tool in head):
                    return False
                return len(form.action - done.actions[-period]) <= _SMALL
        return False

    @staticmethod
    def _remember(done: _Done, form: NormalisedStep, news: bool) -> None:
        done.news.append(news)
        done.actions.append(form.action)
        done.heads.append(form.head)
        done.patterns.append(form.pattern if form.files else 0)
        done.failures.append(form.failure)
        done.steps += 1
        done.states[form.state] = done.steps
        done.states.move_to_end(form.state)
        if len(done.states) > REMEMBERED:
            done.states.popitem(last=False)
        for file in form.files:
            done.files[file] = None
            done.files.move_to_end(file)
        while len(done.files) > 4 * REMEMBERED:
            done.files.popitem(last=False)

    def evidence(self) -> Evidence:
        news = self._done.news
        return {"actions": sorted(set(self._examples.texts)), "new": sum(news), "of": len(news)}
