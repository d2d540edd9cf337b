"""A sandbox that is held open and supervised by a thread of its own, from its start to its end.

It is held open by its first process (the anchor), which does nothing and which nothing inside can kill.
"""

import contextlib
import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Self

from gametape.sandbox import workspace_files
from gametape.sandbox.disk_watch import DiskWatch
from gametape.sandbox.keeper_client import SandboxError
from gametape.sandbox.oneshot import OneShotSandbox
from gametape.sandbox.policy import WORKSPACE
from gametape.sandbox.reactor import Reactor
from gametape.sandbox.resource_watch import children, descendants, stop_processes, watch_resources
from gametape.sandbox.result import KilledBy
from gametape.sandbox.syscall_events import SessionSyscallHandlers


class SessionProcesses:
    """The processes of one session, by their numbers outside."""

    def __init__(self, outer: int) -> None:
        self._outer = outer
        self.anchor: int | None = None
        """The process that holds the sandbox open from inside."""
        self.shell: int | None = None

    def __iter__(self) -> Iterator[int]:
        """The processes whose descendants are all processes of the session."""
        return iter([self._outer, *([self.shell] if self.shell else [])])

    def all(self) -> frozenset[int]:
        return frozenset(pid for root in self for pid in descendants(root))

    def others(self) -> frozenset[int]:
        """All processes but those that the session itself needs."""
        essential = {self._outer, *children(self._outer), self.anchor, self.shell}
        return self.all() - essential

    def pause(self) -> list[int]:
        """Stop the shell and the others. Returns those that were not stopped before, for `continue_processes`."""
        shell = [self.shell] if self.shell else []
        return stop_processes(lambda: [*shell, *self.others()], _ROUNDS)


_ROUNDS = 100
_BUSY_MS, _IDLE_MS = 20, 1000
_CHUNK = 1 << 16
_ANCHOR = ["/usr/bin/env", "--ignore-signal=CHLD", "sleep", "infinity"]
"""The first process inside. It ignores SIGCHLD, so the kernel reaps its children."""


class PersistentSandbox(ABC):
    """The part of a session that does not depend on what runs in it. Methods that begin with `_` run in the thread."""

    def __init__(self, sandbox: OneShotSandbox) -> None:
        self._sandbox = sandbox
        self._policy = sandbox.spec.policy
        self._limits = self._policy.limits
        self._stack = contextlib.ExitStack()
        self._end_reason: str | None = None
        self._closing = False
        self._gone = False
        self._reactor = Reactor()
        self._changed = threading.Condition()
        self._disk = DiskWatch(sandbox.supervision_context().writable, self._limits.disk_mb << 20)
        self._ready = threading.Event()
        self._start()

    @abstractmethod
    def _prepare(self) -> None:
        """Called when the sandbox is up, before its first use."""

    @abstractmethod
    def _on_wake(self) -> None:
        """Called after another thread woke the loop."""

    @abstractmethod
    def _tick(self) -> bool:
        """Check the limits; returns whether to check again soon."""

    @abstractmethod
    def _stop(self, reason: KilledBy) -> None:
        """Kill what exceeds a limit or violates the policy."""

    @abstractmethod
    def _on_gone(self) -> None:
        """Called when the sandbox is gone: answer every waiting caller."""

    def put(self, path: str, content: bytes) -> None:
        workspace_files.write_file(self._tree(), path, content)

    def get(self, path: str) -> bytes:
        return workspace_files.read_file(self._tree(), path)

    def close(self) -> None:
        """Kill everything inside; when this returns nothing of it is left."""
        self._closing = True
        self._end_processes()
        self._reactor.wake()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        self._sandbox.holds_session = True
        self._network = self._sandbox.network(self._stack)
        self._running, pipes = self._sandbox.launch(_ANCHOR, self._stack)
        self._processes = SessionProcesses(self._running.pid)
        self._resources = watch_resources(self._running.group, self._processes, self._limits)
        granted = self._sandbox.supervision_context().granted
        self._syscalls = SessionSyscallHandlers(
            self._policy, granted, self._reactor, self._resources.may_fork, self._stop
        )
        self._thread = threading.Thread(target=self._run_loop, name="gametape-session", daemon=True)
        self._reactor.on_wake(self._on_ring)
        self._reactor.register(self._running.channel.fileno(), lambda _event: self._sandbox_ended())
        self._syscalls.listen(self._running.take_listener(), self._anchor_started)
        for descriptor in pipes:
            self._reactor.register(descriptor, self._drop_output(descriptor))
        self._thread.start()
        self._ready.wait()
        if self._end_reason:
            raise SandboxError(f"the session could not be started: {self._end_reason}")

    def _run_loop(self) -> None:
        busy = False
        try:
            while not self._closing and self._end_reason is None:
                self._reactor.run_once(self._disk.pause_ms(_BUSY_MS) if busy else _IDLE_MS)
                busy = self._ready.is_set() and self._tick()
        except (SandboxError, OSError) as error:  # told to whoever waits; no fault of this program
            self._end_reason = f"the session broke: {error}"
        except Exception as error:
            self._end_reason = f"the session broke: {error}"
            raise
        finally:
            self._end_reason = self._end_reason or "the session is closed"
            self._end_sandbox()
            self._on_gone()
            self._ready.set()

    def _on_ring(self) -> None:
        if not self._ready.is_set():
            self._prepare()
            self._ready.set()
        self._on_wake()

    def _anchor_started(self, pid: int) -> None:
        self._processes.anchor = pid
        if self._network:
            try:
                self._network.open(pid)
            except (SandboxError, OSError) as error:
                self._end_reason = f"its network could not be opened: {error}"
                return
        self._disk.attach(self._processes, pid, self._sandbox.supervision_context().temporary)
        self._reactor.wake()

    def _sandbox_ended(self) -> None:
        message = self._running.channel.recv(_CHUNK)
        self._end_reason = "the sandbox ended" if message else "the sandbox keeper was killed"

    def _drop_output(self, descriptor: int) -> Callable[[int], None]:
        def read(_event: int) -> None:
            with contextlib.suppress(BlockingIOError):
                if not os.read(descriptor, _CHUNK):
                    self._reactor.unregister(descriptor)

        return read

    def _end_processes(self) -> None:
        """Callable from any thread: the supervising one may be waiting for a process inside."""
        with self._changed:
            if not self._gone:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._running.pidfd, signal.SIGKILL)

    def _end_sandbox(self) -> None:
        self._end_processes()
        self._running.channel.settimeout(10)
        with contextlib.suppress(OSError):
            self._running.channel.recv(_CHUNK)
        self._syscalls.close()
        self._disk.close()
        with self._changed:
            self._gone = True
            self._stack.close()
        self._reactor.close()

    def _tree(self) -> str:
        """The workspace as the host reaches it while the sandbox is up."""
        if self._end_reason or self._processes.anchor is None:
            raise SandboxError(self._end_reason or "the session has not started")
        return self._sandbox.workspace or f"/proc/{self._processes.anchor}/root{WORKSPACE}"
