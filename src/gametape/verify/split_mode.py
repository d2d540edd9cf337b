"""Split mode: the tests in one sandbox, the agent's code in another, and one socket per test file between them.

The test process never imports the agent's code; what comes over the socket is plain data or an exception. There is
nothing to forge but answers, and those are what the tests are about. So no twins, and the higher assurance.
"""

import contextlib
import random
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from gametape.record.source_tree import SourceTree
from gametape.verify import jobs
from gametape.verify.preparation import PreparedTask
from gametape.verify.runner import JobReport, TestProcess, ZygotePool
from gametape.verify.verifier_run import RunEvent, VerifierRun, parse_report


def run_split(prepared: PreparedTask, sources: SourceTree, zygotes: ZygotePool, seed: int | None = None) -> VerifierRun:
    """Run all tests of a split task, in another order with a seed."""
    subject = prepared.loaded_task
    tests = subject.task.tests
    shuffle = None if seed is None else random.Random(seed)
    suite = subject.suite
    steps = [
        *jobs.plan_processes("visible", suite, tests.visible, prepared.file_seconds, messages=True, shuffle=shuffle),
        *jobs.plan_processes("held out", suite, tests.held_out, prepared.file_seconds, shuffle=shuffle),
    ]
    work = jobs.build_job(subject, sources, SourceTree(), [replace(step, laid={}) for step in steps])
    test = jobs.build_job(subject, SourceTree(), suite, steps)
    with contextlib.ExitStack() as stack:
        pairs = [socket.socketpair() for _ in steps]
        for one, other in pairs:
            stack.callback(one.close)
            stack.callback(other.close)
        workers = zygotes.take(subject.interpreter, prepared.memory_mb, "worker_zygote")
        stack.callback(workers.close)
        testers = zygotes.take(subject.interpreter, prepared.memory_mb)
        with ThreadPoolExecutor(1) as thread:
            working = thread.submit(workers.run, work, prepared.job_seconds, [one for one, _ in pairs])
            report = testers.run(test, prepared.job_seconds, [other for _, other in pairs])
            worked = working.result()
    return _together(report, worked, steps, "as written" if seed is None else "shuffled")


_HUNG_UP = RunEvent("left early", "exit code 0")
"""What a worker looks like that was ended because its tests were over."""


def _together(tested: JobReport, worked: JobReport, processes: list[TestProcess], order: str) -> VerifierRun:
    """Results are the testers' word; what the code did is seen in the other sandbox."""
    run = parse_report(tested, processes, order)
    work = parse_report(worked, processes)
    told = tuple(event for event in work.events if event != _HUNG_UP)
    return VerifierRun(
        outcomes=run.outcomes,
        events=(*run.events, *told),
        violations=worked.sandbox.violations,
        killed_by=run.killed_by or worked.sandbox.killed_by,
        seconds=run.seconds,
        order=order,
    )
