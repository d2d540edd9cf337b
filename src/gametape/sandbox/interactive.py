"""A sandbox around one program with which the host exchanges messages: its standard input is a socket."""

import contextlib
import signal
import socket
import threading
from collections.abc import Sequence

from gametape.core.errors import MissingDependency
from gametape.sandbox.backend import SandboxSpec, open_backend
from gametape.sandbox.keeper_client import SandboxError
from gametape.sandbox.oneshot import OneShotSandbox, sanitized_violations, with_requests
from gametape.sandbox.result import ExecResult, PolicyViolation
from gametape.sandbox.supervisor import Supervisor

_QUIET_MS, _BUSY_MS = 200, 20


class InteractiveProcess:
    """A program in a sandbox, supervised by a thread until the program ends or `close` kills it.

    The wall-clock limit counts from the program's start, so give it a long one and call `close`.
    """

    def __init__(self, sandbox: OneShotSandbox, argv: Sequence[str]) -> None:
        self.socket, theirs = socket.socketpair()
        self._sandbox = sandbox
        self._end_lock = threading.Lock()
        self._gone = False
        self._result: ExecResult | None = None
        self._failure: BaseException | None = None
        self._stack = contextlib.ExitStack()
        try:
            network = self._network = sandbox.network(self._stack)
            self._running, pipes = sandbox.launch([*argv], self._stack, theirs.detach())
            self._supervisor = Supervisor(
                self._running, pipes, sandbox.spec.policy, sandbox.supervision_context(network)
            )
        except BaseException:
            self._stack.close()
            self.socket.close()
            raise
        self._supervisor.tick_ms = _QUIET_MS
        self._thread = threading.Thread(target=self._watch, name="gametape-interactive", daemon=True)
        self._thread.start()

    def watch_closely(self) -> None:
        """From now on what runs is hostile: check the limits often."""
        self._supervisor.tick_ms = _BUSY_MS

    def violations(self, start: int = 0) -> tuple[PolicyViolation, ...]:
        """The violations so far, from this position on."""
        return sanitized_violations(self._supervisor.violations(start))

    def kill(self) -> None:
        """Kill everything inside."""
        with self._end_lock:
            if not self._gone:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._running.pidfd, signal.SIGKILL)

    def result(self) -> ExecResult:
        """Wait for the end and return the result."""
        self._thread.join()
        if self._failure:
            raise self._failure
        assert self._result is not None
        return self._result

    def close(self) -> None:
        """Kill it, if it still runs, and wait until nothing of it is left."""
        self.kill()
        self._thread.join()
        self.socket.close()

    def __enter__(self) -> "InteractiveProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _watch(self) -> None:
        try:
            outcome = self._supervisor.watch()
            if self._network:
                self._network.close()
            self._result = with_requests(self._sandbox.result(outcome, outcome.violations), self._network)
        except BaseException as error:
            self._failure = error
            if not isinstance(error, (SandboxError, OSError)):
                raise
        finally:
            with self._end_lock:
                self._gone = True
                self._stack.close()
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)


def open_interactive(spec: SandboxSpec, argv: Sequence[str], backend: str = "bubblewrap") -> InteractiveProcess:
    """Start a program in a sandbox, or raise an error that says why that cannot be."""
    sandbox = open_backend(backend).start(spec)
    if not isinstance(sandbox, OneShotSandbox):
        raise MissingDependency(
            f"the {backend} sandbox runs single commands only; an interactive process needs bubblewrap or oci"
        )
    return InteractiveProcess(sandbox, argv)
