"""Tells the steps of a long job, such as a rename over many files: the same done again and again that gets on.

Whoever renames eighty files says eighty times the same, or nothing. The monitors of words and of silence do not look at
such steps; those of loops do, since what fails or stands still there is no job.
"""

from collections import OrderedDict, deque

from gametape.watch.monitors.loops import Sessions
from gametape.watch.normalised import Course, normalised
from gametape.watch.observed_step import ObservedStep

_LAST, _ALIKE = 12, 3
"""Among so many steps, so many were like this one: a job."""
_LONGEST = 200
"""Steps of one kind in a row that get on; after that they are looked at again."""
_MOST_WAITS = 30
_MOST_FILES = 400


class _Jobs:
    """What one session is at."""

    def __init__(self) -> None:
        self.kinds: deque[int] = deque(maxlen=_LAST)
        self.files: OrderedDict[str, None] = OrderedDict()
        self.courses: OrderedDict[int, Course] = OrderedDict()
        self.lately: deque[bool] = deque(maxlen=_LONGEST)
        self.waits = 0

    def gets_on(self, step: ObservedStep) -> bool:
        form = normalised(step)
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


class JobFilter:
    """Tells of each step whether it is one of a job, session by session."""

    def __init__(self) -> None:
        self._sessions = Sessions(_Jobs)

    def is_job(self, step: ObservedStep) -> bool:
        if not step.actions:
            return False
        jobs = self._sessions.of(step.session)
        on = jobs.gets_on(step)
        jobs.lately.append(on)
        return on and not (len(jobs.lately) == _LONGEST and all(jobs.lately))
