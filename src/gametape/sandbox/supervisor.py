"""Watches one sandbox from its start to its end: output, waiting calls, limits. One thread, one poll loop."""

import json
import os
import select
import signal
import time
from dataclasses import dataclass
from typing import Any

from gametape.sandbox import kernel
from gametape.sandbox.cgroups import Counters
from gametape.sandbox.disk import DiskWatch
from gametape.sandbox.events import Wall
from gametape.sandbox.launcher import Running, SandboxError
from gametape.sandbox.output import Capture
from gametape.sandbox.policy import Limits
from gametape.sandbox.result import KilledBy
from gametape.sandbox.watching import Clock, ResourceWatch, over

_TICK_MS = 20
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Outcome:
    """What was seen, before it is made presentable."""

    status: int
    counters: Counters
    killed_by: KilledBy | None
    wall_seconds: float


class Supervisor:
    def __init__(
        self,
        running: Running,
        pipes: dict[int, str],
        capture: Capture,
        wall: Wall,
        limits: Limits,
        clock: Clock,
        resources: ResourceWatch,
        disk: DiskWatch,
    ) -> None:
        self._running = running
        self._pipes = pipes
        self._capture = capture
        self._wall = wall
        self._limits = limits
        self._clock = clock
        self._next_check = 0.0
        self._resources = resources
        self._disk = disk
        self._killed_by: KilledBy | None = None
        self._ending: dict[str, Any] | None = None
        self._poll = select.poll()
        for descriptor in pipes:
            self._poll.register(descriptor, select.POLLIN)
        self._poll.register(running.channel, select.POLLIN)
        if running.listener is not None:
            kernel.prefer_same_core(running.listener)
            self._poll.register(running.listener, select.POLLIN)

    def watch(self) -> Outcome:
        """Until the sandbox is gone and its output is read. Whatever interrupts us ends the sandbox first."""
        try:
            while self._ending is None or self._pipes:
                self._step()
        except BaseException:
            self._kill(None)
            self._await_end()
            raise
        return self._outcome(self._ending)

    def _step(self) -> None:
        listener = self._running.listener
        for descriptor, event in self._poll.poll(_TICK_MS if self._ending is None else None):
            if descriptor == listener:
                if event & select.POLLIN:
                    if self._wall.answer(descriptor):
                        self._kill("policy")
                else:
                    self._poll.unregister(descriptor)  # the last filtered process is gone
            elif descriptor in self._pipes:
                self._read(descriptor)
            else:
                self._hear()
        if self._ending is None and self._killed_by is None and time.monotonic() >= self._next_check:
            self._check_limits()

    def _check_limits(self) -> None:
        self._next_check = time.monotonic() + _TICK_MS / 1000
        if self._clock.left() <= 0:
            self._kill("time")
        elif reason := self._resources.exceeded():
            self._kill(reason)
        elif self._disk.exceeded():
            self._kill("disk")

    def _read(self, descriptor: int) -> None:
        data = os.read(descriptor, _CHUNK)
        if not data:
            self._poll.unregister(descriptor)
            del self._pipes[descriptor]
        elif not self._capture.add(self._pipes[descriptor], data):
            self._kill("output")

    def _hear(self) -> None:
        """The keeper's last word."""
        message = self._running.channel.recv(_CHUNK)
        self._poll.unregister(self._running.channel)
        self._ending = json.loads(message) if message else {"error": "the sandbox keeper was killed"}

    def _kill(self, reason: KilledBy | None) -> None:
        if self._killed_by is None:
            self._killed_by = reason
        try:
            signal.pidfd_send_signal(self._running.pidfd, signal.SIGKILL)
        except ProcessLookupError:
            return

    def _await_end(self) -> None:
        if self._ending is None:
            self._running.channel.settimeout(10)
            try:
                self._running.channel.recv(_CHUNK)
            except OSError:
                return

    def _outcome(self, ending: dict[str, Any]) -> Outcome:
        wall_seconds = self._clock.elapsed()
        if "error" in ending:
            raise SandboxError(ending["error"])
        counters = self._resources.final(Counters(**ending["counters"]))
        killed_by = self._killed_by
        if killed_by is None and ending["ended"] != 0:
            killed_by = self._limit_behind(ending["ended"], counters)
        if killed_by is None and self._disk.exceeded(last_look=True):
            killed_by = "disk"
        return Outcome(ending["ended"], counters, killed_by, wall_seconds)

    def _limit_behind(self, status: int, counters: Counters) -> KilledBy | None:
        """A command that failed by itself may still have been ended by a limit that the kernel held."""
        return over(counters, self._limits) or _SIGNALS.get(os.waitstatus_to_exitcode(status) - 128)


_SIGNALS: dict[int, KilledBy] = {signal.SIGXCPU: "cpu", signal.SIGXFSZ: "disk", signal.SIGSYS: "policy"}
