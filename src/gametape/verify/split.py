"""Split mode: the tests in one sandbox, the agent's code in another, and one socket per test file between them.

The test process never imports the agent's code; what comes over the socket is plain data or an exception. There is
nothing to forge but answers, and those are what the tests are about. So no twins, and the higher assurance.
"""

import contextlib
import random
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from gametape.verify import jobs
from gametape.verify.crew import Crew
from gametape.verify.observation import Event, Run
from gametape.verify.observe import observe
from gametape.verify.preparation import Prepared
from gametape.verify.runner import Report, Step
from gametape.verify.tree import Tree


def run_split(prepared: Prepared, sources: Tree, crew: Crew, seed: int | None = None) -> Run:
    """Run all tests of a split task, in another order with a seed."""
    subject = prepared.subject
    tests = subject.task.tests
    shuffle = None if seed is None else random.Random(seed)
    suite = subject.suite
    steps = [
        *jobs.steps("visible", suite, tests.visible, prepared.seconds, messages=True, shuffle=shuffle),
        *jobs.steps("held out", suite, tests.held_out, prepared.seconds, shuffle=shuffle),
    ]
    work = jobs.job(subject, sources, Tree(), [replace(step, laid={}) for step in steps])
    test = jobs.job(subject, Tree(), suite, steps)
    with contextlib.ExitStack() as stack:
        pairs = [socket.socketpair() for _ in steps]
        for one, other in pairs:
            stack.callback(one.close)
            stack.callback(other.close)
        workers = crew.take(subject.interpreter, prepared.memory_mb, "workshop")
        stack.callback(workers.close)
        testers = crew.take(subject.interpreter, prepared.memory_mb)
        with ThreadPoolExecutor(1) as thread:
            working = thread.submit(workers.run, work, prepared.patience, [one for one, _ in pairs])
            report = testers.run(test, prepared.patience, [other for _, other in pairs])
            worked = working.result()
    return _together(report, worked, steps, "as written" if seed is None else "shuffled")


_HUNG_UP = Event("left early", "exit code 0")
"""What a worker looks like that was ended because its tests were over."""


def _together(tested: Report, worked: Report, steps: list[Step], order: str) -> Run:
    """Results are the testers' word; what the code did is seen in the other sandbox."""
    run = observe(tested, steps, order)
    work = observe(worked, steps)
    told = tuple(event for event in work.events if event != _HUNG_UP)
    return Run(
        outcomes=run.outcomes,
        events=(*run.events, *told),
        violations=worked.sandbox.violations,
        killed_by=run.killed_by or worked.sandbox.killed_by,
        seconds=run.seconds,
        order=order,
    )
