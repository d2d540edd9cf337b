"""Split mode: the tests in one sandbox, the agent's code in another, and one socket per test file between them.

The test process never imports the agent's code; what comes over the socket is plain data or an exception. The code can
only give other answers, which is what the tests check. So split mode needs no twins and has the higher assurance.
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


def run_split(
    prepared: PreparedTask,
    sources: SourceTree,
    zygotes: ZygotePool,
    seed: int | None = None,
    held_out_messages: bool = False,
) -> VerifierRun:
    """Run all tests of a split task; with a seed, in another order. What held-out tests say is for graders only."""
    loaded_task = prepared.loaded_task
    tests = loaded_task.task.tests
    shuffle = None if seed is None else random.Random(seed)
    suite = loaded_task.suite
    processes = [
        *jobs.plan_processes("visible", suite, tests.visible, prepared.file_seconds, messages=True, shuffle=shuffle),
        *jobs.plan_processes(
            "held out", suite, tests.held_out, prepared.file_seconds, messages=held_out_messages, shuffle=shuffle
        ),
    ]
    worker_job = jobs.build_job(
        loaded_task, sources, SourceTree(), [replace(process, laid={}) for process in processes]
    )
    test_job = jobs.build_job(loaded_task, SourceTree(), suite, processes)
    with contextlib.ExitStack() as stack:
        pairs = [socket.socketpair() for _ in processes]
        for worker_end, tester_end in pairs:
            stack.callback(worker_end.close)
            stack.callback(tester_end.close)
        workers = zygotes.take(loaded_task.interpreter, prepared.memory_mb, "worker_zygote")
        stack.callback(workers.close)
        testers = zygotes.take(loaded_task.interpreter, prepared.memory_mb)
        with ThreadPoolExecutor(1) as thread:
            working = thread.submit(
                workers.run, worker_job, prepared.job_seconds, [worker_end for worker_end, _ in pairs]
            )
            report = testers.run(test_job, prepared.job_seconds, [tester_end for _, tester_end in pairs])
            worked = working.result()
    return _merge_reports(report, worked, processes, "as written" if seed is None else "shuffled")


_HUNG_UP = RunEvent("left early", "exit code 0")
"""The event of a worker that was ended because its tests were over."""


def _merge_reports(tested: JobReport, worked: JobReport, processes: list[TestProcess], order: str) -> VerifierRun:
    """Results come from the test processes, violations and events of the code from the workers' sandbox."""
    run = parse_report(tested, processes, order)
    work = parse_report(worked, processes)
    worker_events = tuple(event for event in work.events if event != _HUNG_UP)
    return VerifierRun(
        outcomes=run.outcomes,
        events=(*run.events, *worker_events),
        violations=worked.sandbox.violations,
        killed_by=run.killed_by or worked.sandbox.killed_by,
        seconds=run.seconds,
        order=order,
    )
