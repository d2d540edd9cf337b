"""Watches one sandbox from its start to its end: output, waiting calls, limits. One thread, one poll loop."""

import contextlib
import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gametape.sandbox import linux
from gametape.sandbox.cgroups import ResourceCounters
from gametape.sandbox.disk_watch import DiskWatch
from gametape.sandbox.keeper_client import RunningSandbox, SandboxError
from gametape.sandbox.output import OutputCapture
from gametape.sandbox.policy import SandboxPolicy
from gametape.sandbox.resource_watch import exceeded_limit, watch_resources
from gametape.sandbox.result import FileTrace, KilledBy, PolicyViolation
from gametape.sandbox.syscall_events import SyscallHandler

TICK_MS = 20
CHUNK = 1 << 16


@dataclass(frozen=True)
class SupervisionContext:
    """What the supervisor must know about a sandbox besides its policy."""

    granted: tuple[str, ...]
    """Granted paths, as they are inside."""
    writable: tuple[str, ...]
    """Directories of the host that the command may write to."""
    temporary: tuple[str, ...]
    """Mount points inside of file systems that live in memory."""
    process_backstop: int | None
    """RLIMIT_NPROC, when it can only be set inside: outside, the host user's own processes would count towards it."""
    open_network: Callable[[int], None] | None = None
    """Called with the command's process before its first instruction."""


@dataclass(frozen=True)
class RawOutcome:
    """What was observed, before output and texts are sanitized."""

    exit_code: int
    signal: int | None
    counters: ResourceCounters
    killed_by: KilledBy | None
    wall_seconds: float
    streams: dict[str, bytes]
    violations: list[PolicyViolation]
    violations_dropped: int
    started: bool
    trace: FileTrace | None = None


class Supervisor:
    def __init__(
        self, running: RunningSandbox, pipes: dict[int, str], policy: SandboxPolicy, context: SupervisionContext
    ) -> None:
        limits = policy.limits
        self._running = running
        self._pipes = pipes
        self._limits = limits
        self._context = context
        self._capture = OutputCapture(limits.output_bytes)
        self._syscalls = SyscallHandler(policy, context.granted, self.on_start, self.may_fork)
        self._disk = DiskWatch(context.writable, limits.disk_mb << 20)
        self._resources = watch_resources(running.group, [running.pid], limits, builder=running.pid)
        self._command: int | None = None
        self._began = time.monotonic()
        self._next_check = self._next_disk_check = 0.0
        self._killed_by: KilledBy | None = None
        self.tick_ms = TICK_MS
        """How often the limits are checked. A caller that knows that nothing hostile runs yet may check less often."""
        self._ending: dict[str, Any] | None = None
        self._poll = select.poll()
        for descriptor in pipes:
            self._poll.register(descriptor, select.POLLIN)
        self._poll.register(running.channel, select.POLLIN)
        if running.listener is not None:
            linux.prefer_same_core(running.listener)
            self._cores = linux.move_to_our_core(running.pid)
            self._poll.register(running.listener, select.POLLIN)

    def watch(self) -> RawOutcome:
        """Watch until the sandbox is gone and its output is read. Any exception here kills the sandbox first."""
        try:
            while self._ending is None:
                self._step(self._disk.pause_ms(self.tick_ms))
            while self._pipes and self._step(0):
                pass  # what is still in the pipes; another process may hold them open, so never wait
            return self._outcome(self._ending)
        except BaseException:
            self._kill(None)
            self._await_end()
            raise
        finally:
            self._disk.close()
            if self._command is not None:
                os.close(self._command)

    def on_start(self, pid: int) -> None:
        """The command is about to run its first instruction."""
        if self._context.process_backstop is not None:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_NPROC, (self._context.process_backstop,) * 2)
        linux.set_affinity(pid, self._cores)
        if self._context.open_network:
            self._context.open_network(pid)
        self._command = os.pidfd_open(pid)
        self._disk.attach([self._running.pid], pid, self._context.temporary)
        self._began = time.monotonic()

    def violations(self, start: int) -> list[PolicyViolation]:
        """The violations that were recorded so far, from this position on."""
        return self._syscalls.violations[start:]

    def may_fork(self) -> bool:
        return self._resources.may_fork()

    def _step(self, wait_ms: int) -> bool:
        """Handle every descriptor that is ready; False when none was."""
        ready = self._poll.poll(wait_ms)
        for descriptor, event in ready:
            if descriptor == self._running.listener:
                if event & select.POLLIN:
                    if reason := self._syscalls.answer(descriptor):
                        self._kill(reason)
                else:
                    self._poll.unregister(descriptor)  # the last filtered process is gone
            elif descriptor in self._pipes:
                self._read(descriptor)
            else:
                self._receive_end()
        if self._ending is None and self._killed_by is None:
            self._check_limits(time.monotonic())
        return bool(ready)

    def _check_limits(self, now: float) -> None:
        """Those whose time has come: disk space is looked at more often when little of it is left."""
        building = self._running.listener is not None and not self._syscalls.command_started
        if now >= self._next_check:
            self._next_check = now + self.tick_ms / 1000
            if now - self._began >= self._limits.wall_seconds:
                self._kill("time")
            elif not building and (reason := self._resources.exceeded()):
                self._kill(reason)
        if now >= self._next_disk_check and not building and self._killed_by is None:
            if self._disk.exceeded():
                self._kill("disk")
            self._next_disk_check = now + self._disk.pause_ms(self.tick_ms) / 1000

    def _read(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._poll.unregister(descriptor)
            del self._pipes[descriptor]
        elif not self._capture.add(self._pipes[descriptor], data):
            self._kill("output")

    def _receive_end(self) -> None:
        """Receive the keeper's last message."""
        message = self._running.channel.recv(CHUNK)
        self._poll.unregister(self._running.channel)
        self._ending = json.loads(message) if message else {"error": "the sandbox keeper was killed"}

    def _kill(self, reason: KilledBy | None) -> None:
        if self._killed_by is None:
            self._killed_by = reason
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._running.pidfd, signal.SIGKILL)

    def _await_end(self) -> None:
        if self._ending is None:
            self._running.channel.settimeout(10)
            with contextlib.suppress(OSError):
                self._running.channel.recv(CHUNK)

    def _outcome(self, ending: dict[str, Any]) -> RawOutcome:
        wall_seconds = time.monotonic() - self._began
        if "error" in ending:
            raise SandboxError(ending["error"])
        exit_code, ended_by = self._how_it_ended(ending["ended"])
        counters = self._resources.final_counters(ResourceCounters(**ending["counters"]))
        killed_by = self._killed_by
        if killed_by is None and exit_code != 0:  # it ended itself, perhaps because the kernel had refused it something
            killed_by = exceeded_limit(counters, self._limits)
        if killed_by is None and (self._disk.exceeded(last_look=True) or self._reached_file_size(ended_by)):
            killed_by = "disk"
        return RawOutcome(
            exit_code=exit_code,
            signal=ended_by,
            counters=counters,
            killed_by=killed_by,
            wall_seconds=wall_seconds,
            streams={name: bytes(data) for name, data in self._capture.streams.items()},
            violations=self._syscalls.violations,
            violations_dropped=self._syscalls.dropped,
            started=self._syscalls.command_started,
            trace=self._syscalls.tracer.trace() if self._syscalls.tracer else None,
        )

    def _reached_file_size(self, ended_by: int | None) -> bool:
        """Whether a file that became too large ended it. The signal alone proves nothing: anybody can send it."""
        return ended_by == signal.SIGXFSZ and self._disk.has_file_of(self._limits.file_size_mb << 20)

    def _how_it_ended(self, outer_status: int) -> tuple[int, int | None]:
        """Exit code and signal. The outer process reports 128 + N for signal N; newer kernels tell the two apart."""
        status = linux.wait_status(self._command) if self._command is not None else None
        code = os.waitstatus_to_exitcode(outer_status if status is None else status)
        if code < 0:
            return 128 - code, -code
        status_is_exact = status is not None
        return code, code - 128 if 128 < code <= 192 and not status_is_exact else None
