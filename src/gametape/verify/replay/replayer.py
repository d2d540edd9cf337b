"""Replay transcripts against some sources: send one side of each, compare what comes back, stop at a difference."""

import contextlib
import functools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.sandbox.keeper_client import SandboxError
from gametape.verify import jobs
from gametape.verify.machine_load import LoadAllowance
from gametape.verify.replay.comparison import Difference, find_difference, is_answer
from gametape.verify.replay.connection import ConnectionOver, FrameConnection
from gametape.verify.replay.sandbox import ReplaySandbox, ReplaySandboxes, ReplaySession, Role, library_modules
from gametape.verify.replay.script import NEXT_SESSION, Exchange, Script
from gametape.verify.runner import ZygoteJob
from gametape.verify.verifier_run import VerifierRun, join_runs

Conversation = Callable[[FrameConnection, float], bool]
"""Sends and receives until a deadline. Returns whether the process then waits for a new conversation: it does not if it
is in the middle of a callback, or has sent more than it was asked for."""
Ending = Literal["timed out", "died"]
_LEAST_SECONDS, _SLACK = 4.0, 20.0
"""A transcript may take `_LEAST_SECONDS` and `_SLACK` times what the reference took, and more on a busy machine."""
_EACH = 0.1
"""Seconds beyond that for each transcript, in all transcripts together."""
_AFTER_TIMEOUT = 0.25
"""The factor on that after a time-out: code that hangs in one transcript hangs in the next."""
_MOST_TIMEOUTS, _MOST_DEATHS, _MOST_LOST = 2, 10, 2
"""After so many time-outs, deaths of a process, or sandboxes that had to be thrown away, what is left is not run."""


@dataclass(frozen=True)
class ReplayResult:
    """What came of one transcript."""

    test: str
    same: bool = False
    difference: Difference | None = None
    timed_out: bool = False
    died: bool = False
    """The process ended, or had ended too often before."""


class Replayer:
    """Replays over one tree in a sandbox that it borrows. Use it as a context, for one verdict, in one thread."""

    def __init__(
        self,
        loaded_task: LoadedTask,
        sources: SourceTree,
        sandboxes: ReplaySandboxes,
        role: Role = "attempt",
        new: bool = False,
        allowance: LoadAllowance | None = None,
    ) -> None:
        """`allowance` is that of a verdict, for all its replays; without one a busy machine lengthens every limit."""
        self._job = worker_job(loaded_task, sources)
        self._modules = library_modules(loaded_task.reference or SourceTree())
        self._borrow: Callable[[], contextlib.AbstractContextManager[ReplaySandbox]] = functools.partial(
            sandboxes.borrow, loaded_task, role, new
        )
        self._stack = contextlib.ExitStack()
        self._sandbox: ReplaySandbox | None = None
        self._session: ReplaySession | None = None
        self._runs: list[VerifierRun] = []
        self.allowance = allowance or LoadAllowance()
        self._timeouts = self._deaths = 0
        self._allowed_again = self._spent_again = 0.0
        self.lost = 0
        """Sandboxes that had to be thrown away, time-outs aside."""
        self._began = time.monotonic()

    def replay(self, scripts: Iterable[Script], alone: bool = False, again: bool = False) -> list[ReplayResult]:
        """Replay some transcripts, all in one process or, `alone`, each in a process of its own. Those that are
        replayed `again` may take, all of them together, what the first replays were allowed."""
        scripts = [*scripts]
        began = time.monotonic()
        if not again:
            least = 2 * _LEAST_SECONDS + sum(_EACH + _SLACK * script.seconds for script in scripts)
            allowed = self.allowance.lengthen(least)
            self._allowed_again += allowed
        results = []
        for script in scripts:
            if alone:
                self._end_session()
            late = self._spent_again > self._allowed_again if again else time.monotonic() > began + allowed
            results.append(ReplayResult(script.test, timed_out=True) if late else self._replay(script))
        if again:
            self._spent_again += time.monotonic() - began
        return results

    @property
    def has_hung(self) -> bool:
        return self._timeouts > 0

    def renew(self) -> None:
        """Go on in a new process."""
        self._end_session()

    def run(self) -> VerifierRun:
        """What the processes did so far, without results; ends the session."""
        self._end_session()
        nothing = VerifierRun(outcomes={}, order="shuffled")
        return replace(join_runs([*self._runs, nothing]), seconds=time.monotonic() - self._began)

    def __enter__(self) -> "Replayer":
        return self

    def __exit__(self, *_: object) -> None:
        self._end_session()
        self._stack.close()

    def converse(self, conversation: Conversation, seconds: float) -> Ending | None:
        """Let a conversation with the process take place. Returns how it failed; None if it came to its end.

        The seconds count from where the process is there: what it takes to start it is not the attempt's fault.
        """
        if self._timeouts >= _MOST_TIMEOUTS:
            return "timed out"
        if self._deaths >= _MOST_DEATHS or self.lost >= _MOST_LOST:
            return "died"
        seconds *= _AFTER_TIMEOUT if self._timeouts else 1.0
        allowed = self.allowance.lengthen(seconds)
        try:
            connection = self._connection()
            if not conversation(connection, time.monotonic() + allowed):
                self._end_session()
        except TimeoutError:
            self._timeouts += 1
            self.allowance.spend(allowed - seconds)
            self._end_session(hung=True)
            return "timed out"
        except ConnectionOver:
            self._deaths += 1
            self._end_session(left=True)
            return "died"
        return None

    def _replay(self, script: Script) -> ReplayResult:
        differences: list[Difference] = []
        ending = self.converse(functools.partial(_compare, script, differences), _patience(script))
        if ending and not differences:
            return ReplayResult(script.test, timed_out=ending == "timed out", died=ending == "died")
        return ReplayResult(script.test, same=not differences, difference=differences[0] if differences else None)

    def _connection(self) -> FrameConnection:
        if self._session is None:
            self._session = self._open()
        return self._session.connection

    def _open(self) -> ReplaySession:
        if self._sandbox and self._sandbox.usable:
            with contextlib.suppress(SandboxError):
                return self._sandbox.open(self._job, self._modules)
        self._stack.close()
        self._sandbox = self._stack.enter_context(self._borrow())
        return self._sandbox.open(self._job, self._modules)

    def _end_session(self, hung: bool = False, left: bool = False) -> None:
        session, self._session = self._session, None
        if session:
            self._runs.append(session.close(hung, left))
            self.lost += not hung and not session.sandbox.usable


def _patience(script: Script) -> float:
    return _LEAST_SECONDS + _SLACK * script.seconds


def _compare(script: Script, differences: list[Difference], connection: FrameConnection, deadline: float) -> bool:
    """Send a transcript's requests until an answer differs, which is added to `differences`."""
    begin = NEXT_SESSION
    for recorded in script.exchanges:
        exchange = recorded.renewed()
        connection.send(begin + exchange.sent)
        begin = b""
        for position in range(len(exchange.expected)):
            actual = connection.receive(deadline)
            if not exchange.accepts(position, actual):
                requests, expected = exchange.requests, exchange.expected
                differences.append(
                    find_difference(requests[position], expected[position], exchange.without_decoys(actual))
                )
                return _finish(connection, exchange, position, actual, deadline)
    return not connection.unread


def _finish(connection: FrameConnection, exchange: Exchange, position: int, actual: bytes, deadline: float) -> bool:
    """Receive the answers that are still due after a difference; returns whether the worker then waits for a new
    request. It does not if it is in the middle of a callback."""
    if not exchange.outermost or not is_answer(actual):
        return False
    return all(is_answer(connection.receive(deadline)) for _ in exchange.expected[position + 1 :])


def worker_job(loaded_task: LoadedTask, sources: SourceTree) -> ZygoteJob:
    """The files of a sandbox for the code alone: sources and protected files, and no test."""
    task, tree = loaded_task.task, sources.overlaid_on(jobs.files_around(loaded_task))
    return ZygoteJob(tree, (), tuple(task.import_roots), tuple(task.source_paths), ())
