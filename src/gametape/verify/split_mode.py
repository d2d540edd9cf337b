"""Split mode: the tests in one sandbox, the agent's code in another, and one socket per test file between them.

The test process never imports the agent's code; what comes over the socket is plain data or an exception. The code can
only give other answers, which is what the tests check. So split mode needs no twins and has the higher assurance.
"""

import contextlib
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

from gametape.core.task import SplitSurface
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify import jobs
from gametape.verify.runner import JobReport, TestProcess, ZygoteJob, ZygotePool
from gametape.verify.verifier_run import RunEvent, VerifierRun, parse_report


@dataclass(frozen=True)
class SplitRun:
    """How some test processes are run apart from the code."""

    loaded_task: LoadedTask
    surface: SplitSurface
    zygotes: ZygotePool
    seconds: float
    """For all processes together."""

    def run(
        self,
        sources: SourceTree,
        processes: list[TestProcess],
        order: str,
        connect: Callable[[int], tuple[socket.socket, socket.socket]] = lambda _: socket.socketpair(),
    ) -> VerifierRun:
        """Run the processes. `connect` makes the two ends of the connection of the n-th: the worker's, the tests'."""
        worker_job = self._job(sources, SourceTree(), [replace(process, laid={}) for process in processes])
        test_job = self._job(SourceTree(), self.loaded_task.suite, processes)
        with contextlib.ExitStack() as stack:
            pairs = [connect(number) for number in range(len(processes))]
            for worker_end, tester_end in pairs:
                stack.callback(worker_end.close)
                stack.callback(tester_end.close)
            room = jobs.memory_mb(self.loaded_task)
            workers = self.zygotes.take(self.loaded_task.interpreter, room, "worker_zygote")
            stack.callback(workers.close)
            testers = self.zygotes.take(self.loaded_task.interpreter, room)
            with ThreadPoolExecutor(1) as thread:
                working = thread.submit(workers.run, worker_job, self.seconds, [worker_end for worker_end, _ in pairs])
                report = testers.run(test_job, self.seconds, [tester_end for _, tester_end in pairs])
                if not wait([working], _AFTER_THE_TESTS).done:
                    workers.close()  # it does not answer any more
                worked = working.result()
        return _merge_reports(report, worked, processes, order)

    def _job(self, sources: SourceTree, suite: SourceTree, processes: list[TestProcess]) -> ZygoteJob:
        return replace(jobs.build_job(self.loaded_task, sources, suite, processes), split=self.surface)


_AFTER_THE_TESTS = 4.0
"""Seconds for the workers' sandbox to report, when the tests are over."""
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
