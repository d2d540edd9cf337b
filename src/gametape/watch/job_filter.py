"""Tells the steps of a long job, such as a rename over many files: the same done again and again that gets on.

Whoever renames eighty files says eighty times the same, or nothing. The monitors of words do not look at such steps;
those of loops do, since what fails or stands still there is no job. A series is less: one tool on one file, with new
arguments each time, and what is done in between. Words may narrow there as well; silence means nothing.
"""

from collections import OrderedDict, deque
from enum import IntEnum

from gametape.watch.monitors.loops import Sessions
from gametape.watch.normalised import Course, NormalisedStep, normalised
from gametape.watch.observed_step import ObservedStep

_LAST, _ALIKE = 12, 3
"""Among so many steps, so many were like this one: a job."""
_LONGEST = 200
"""Steps in a row of jobs and series; after that they are looked at as others are."""
_MOST_WAITS = 30
_MOST_FILES = 400


class _Jobs:
    """What one session is at."""

    def __init__(self) -> None:
        self.kinds: deque[int] = deque(maxlen=_LAST)
        self.places: deque[int] = deque(maxlen=_LAST)
        self.actions: OrderedDict[int, None] = OrderedDict()
        self.files: OrderedDict[str, None] = OrderedDict()
        self.courses: OrderedDict[int, Course] = OrderedDict()
        self.recent: deque[bool] = deque(maxlen=_LAST)
        self.waits = 0
        self.on = 0
        """Steps in a row that were part of a job or a series."""

    def is_series(self, form: NormalisedStep) -> bool:
        """Whether one tool works on one file, with arguments that are new."""
        place, action = hash((form.head, form.files)), hash(form.action)
        alike = self.places.count(place)
        self.places.append(place)
        is_new = action not in self.actions
        self.actions[action] = None
        self.actions.move_to_end(action)
        if len(self.actions) > _MOST_FILES:
            self.actions.popitem(last=False)
        return alike >= _ALIKE and is_new and bool(form.files)

    def is_job(self, form: NormalisedStep) -> bool:
        kind = hash(form.action - form.files)
        new_file = any(file not in self.files for file in form.files)
        for file in form.files:
            self.files[file] = None
            self.files.move_to_end(file)
        while len(self.files) > _MOST_FILES:
            self.files.popitem(last=False)
        course = self.courses.setdefault(kind, Course(()))
        going = course.goes_on((*form.counts, *form.measures)) != 0 and bool(form.counts or form.measures)
        self.courses.move_to_end(kind)
        if len(self.courses) > _LAST:
            self.courses.popitem(last=False)
        alike = self.kinds.count(kind)
        self.kinds.append(kind)
        self.waits = self.waits + 1 if form.waits and not going else 0
        return alike >= _ALIKE and (new_file or going or 0 < self.waits <= _MOST_WAITS)


class Work(IntEnum):
    """What a step is part of."""

    OTHER = 0
    SERIES = 1
    JOB = 2


class JobFilter:
    """Tells of each step whether it is one of a job or a series, session by session."""

    def __init__(self) -> None:
        self._sessions = Sessions(_Jobs)

    def work_of(self, step: ObservedStep) -> Work:
        if not step.actions:
            return Work.OTHER
        jobs, form = self._sessions.of(step.session), normalised(step)
        series, job = jobs.is_series(form), jobs.is_job(form)
        jobs.recent.append(series or job)
        work = Work.JOB if job else Work.SERIES if sum(jobs.recent) > _ALIKE else Work.OTHER
        jobs.on = jobs.on + 1 if work else 0
        return Work.OTHER if jobs.on > _LONGEST else work
