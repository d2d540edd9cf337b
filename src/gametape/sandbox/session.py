"""A sandbox that stays up: many commands in one shell, under the same wall, watched by one thread.

The sandbox is held open by a process that does nothing (the anchor). The shell is sent in beside it, so a command that
ends its shell, or has to be ended with it, costs a new shell and not the sandbox: files, background jobs and the
record stay.
"""

import contextlib
import json
import os
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from gametape.core.errors import BadInput, Lacking
from gametape.sandbox import workspace
from gametape.sandbox.backend import Spec, open_backend
from gametape.sandbox.cgroups import Counters
from gametape.sandbox.disk import DiskWatch
from gametape.sandbox.gatehouse import Gatehouse
from gametape.sandbox.launcher import Entry, SandboxError
from gametape.sandbox.oneshot import OneShotSandbox
from gametape.sandbox.output import Capture
from gametape.sandbox.policy import WORKSPACE
from gametape.sandbox.population import Population, send
from gametape.sandbox.reactor import Reactor
from gametape.sandbox.result import KilledBy, SessionResult
from gametape.sandbox.shell import BASH, Shell
from gametape.sandbox.supervisor import Outcome
from gametape.sandbox.watching import GroupWatch, ResourceWatch, TreeWatch, over

_BUSY_MS, _IDLE_MS = 20, 1000
_CHUNK = 1 << 16
_ANCHOR = ["/usr/bin/env", "--ignore-signal=CHLD", "sleep", "infinity"]
"""The first process inside. Ignoring its children's end is enough to bury them."""
_PATIENCE = 0.3
"""Seconds between ending a command's processes and ending the shell that still does not answer."""


@dataclass
class _Command:
    text: str
    wall_seconds: float
    capture: Capture
    answer: "Future[SessionResult]" = field(default_factory=Future)
    began: float = 0.0
    before: frozenset[int] = frozenset()
    killed_by: KilledBy | None = None
    killed_at: float = 0.0


class Session:
    """One live sandbox. `run` may be called from any thread; commands wait for each other."""

    def __init__(self, sandbox: OneShotSandbox, directory: str = WORKSPACE) -> None:
        self._sandbox = sandbox
        self._policy = sandbox.spec.policy
        self._limits = self._policy.limits
        self._stack = contextlib.ExitStack()
        self._shell: Shell | None = None
        self._directory = directory
        self._waiting: deque[_Command] = deque()
        self._current: _Command | None = None
        self._over: str | None = None
        self._closing = False
        self._interrupted = False
        self._reactor = Reactor()
        self._gate = threading.Condition()
        self._held = False
        self._disk = DiskWatch(sandbox.scene().writable, self._limits.disk_mb << 20)
        self._ready = threading.Event()
        self._start()

    def run(self, command: str, wall_seconds: float | None = None) -> SessionResult:
        """Run a shell command and wait for it. It sees what earlier ones left: directory, variables, jobs."""
        return self.submit(command, wall_seconds).result()

    def submit(self, command: str, wall_seconds: float | None = None) -> "Future[SessionResult]":
        """The same without waiting."""
        if "\0" in command:
            raise BadInput("a command cannot hold a NUL byte")
        task = _Command(command, wall_seconds or self._limits.wall_seconds, Capture(self._limits.output_bytes))
        self._waiting.append(task)
        self._reactor.ring()
        if self._over:
            self._fail_waiting()
        return task.answer

    def put(self, path: str, content: bytes) -> None:
        workspace.write(self._tree(), path, content)

    def get(self, path: str) -> bytes:
        return workspace.read(self._tree(), path)

    def interrupt(self) -> None:
        """End the command that is running now, as if its time were up."""
        self._interrupted = True
        self._reactor.ring()

    @property
    def directory(self) -> str:
        """Where the shell is."""
        return self._directory

    @contextlib.contextmanager
    def held_still(self) -> Iterator[None]:
        """Between two commands: nothing inside runs, so that its files can be read in peace."""
        with self._gate:
            self._held = True
            self._gate.wait_for(lambda: self._current is None or self._over)
        stopped = self._inside.halt()
        try:
            yield
        finally:
            send(signal.SIGCONT, stopped)
            self._held = False
            self._reactor.ring()

    def alive(self) -> bool:
        return self._over is None

    def close(self) -> None:
        """End everything inside; when this returns nothing of it is left."""
        self._closing = True
        self._reactor.ring()
        self._thread.join()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        self._sandbox.holds_session = True
        self._running, pipes = self._sandbox.launch(_ANCHOR, self._stack)
        self._inside = Population(self._running.pid)
        self._resources: ResourceWatch = (
            GroupWatch(self._running.group, self._limits)
            if self._running.group
            else TreeWatch(self._inside, self._limits)
        )
        shown = self._sandbox.scene().shown
        self._gates = Gatehouse(self._policy, shown, self._reactor, self._resources.may_fork, self._stop)
        self._thread = threading.Thread(target=self._attend, name="gametape-session", daemon=True)
        self._reactor.on_ring(self._rung)
        self._reactor.on(self._running.channel.fileno(), lambda _event: self._sandbox_ended())
        self._gates.listen(self._running.take_listener(), self._anchor_started)
        for descriptor in pipes:
            self._reactor.on(descriptor, self._drop_output(descriptor))
        self._thread.start()
        self._ready.wait()
        if self._over:
            raise SandboxError(f"the session could not be started: {self._over}")

    def _attend(self) -> None:
        try:
            while not self._closing and self._over is None:
                self._reactor.turn(_BUSY_MS if self._current else _IDLE_MS)
                if self._current:
                    self._check(self._current)
        except Exception as error:
            self._over = f"the session broke: {error}"
            raise
        finally:
            self._over = self._over or "the session is closed"
            self._end_sandbox()
            self._fail_waiting()
            self._idle()
            self._ready.set()

    def _rung(self) -> None:
        if self._interrupted:
            self._interrupted = False
            if self._current:
                self._stop("time")
        if not self._ready.is_set():
            self._new_shell()
            self._ready.set()
        self._begin_next()

    def _anchor_started(self, pid: int) -> None:
        self._inside.anchor = pid
        self._disk.attach(self._running.pid, pid, self._sandbox.scene().temporary)
        self._reactor.ring()

    def _sandbox_ended(self) -> None:
        message = self._running.channel.recv(_CHUNK)
        self._over = "the sandbox ended" if message else "the sandbox keeper was killed"

    def _drop_output(self, descriptor: int) -> Callable[[int], None]:
        def read(_event: int) -> None:
            if not os.read(descriptor, _CHUNK):
                self._reactor.off(descriptor)

        return read

    def _begin_next(self) -> None:
        with self._gate:
            if self._current or self._held or not self._waiting or self._over:
                return
            command = self._current = self._waiting.popleft()
        if not command.answer.set_running_or_notify_cancel():
            self._idle()
            return
        self._gates.begin()
        self._resources.begin()
        self._disk.begin()
        try:
            shell = self._shell or self._new_shell()
        except (SandboxError, OSError) as error:
            self._idle()
            command.answer.set_exception(Lacking(f"no shell could be started in the sandbox: {error}"))
            return
        command.before = self._inside.all()
        command.began = time.monotonic()
        shell.send(command.text)
        if not shell.push():
            self._reactor.on(shell.commands, lambda _event: self._push(shell), select.POLLOUT)

    def _push(self, shell: Shell) -> None:
        if shell.push():
            self._reactor.off(shell.commands)

    def _new_shell(self) -> Shell:
        shell = self._shell = Shell.start(self._entry)
        self._gates.listen(shell.listener, self._shell_started)
        self._reactor.on(shell.channel.fileno(), lambda _event: self._shell_ended(shell))
        self._reactor.on(shell.reports, lambda event: self._reported(shell, event))
        for stream, descriptor in (("stdout", shell.stdout), ("stderr", shell.stderr)):
            self._reactor.on(descriptor, self._printer(shell, stream, descriptor))
        return shell

    def _shell_started(self, pid: int) -> None:
        self._inside.shell = pid

    def _entry(self, argv: list[str]) -> Entry:
        if self._inside.anchor is None:
            raise SandboxError("the sandbox has not started")
        plan = self._sandbox.plan(argv)
        return Entry(
            inner=self._inside.anchor,
            group=self._running.group,
            command=argv,
            directory=self._directory,
            filter=plan.filter,
            rlimits=plan.rlimits,
            environment=self._sandbox.environment(),
        )

    def _printer(self, shell: Shell, stream: str, descriptor: int) -> Callable[[int], None]:
        def read(_event: int) -> None:
            data = shell.read(descriptor)
            if data == b"":
                self._reactor.off(descriptor)
            elif data and self._current and not self._current.capture.add(stream, data):
                self._stop("output")

        return read

    def _reported(self, shell: Shell, event: int) -> None:
        report = shell.report() if event & select.POLLIN else None
        if report and self._current:
            self._directory = report.directory
            self._finish(report.exit_code, None, restarted=False)
        elif not event & select.POLLIN:
            self._reactor.off(shell.reports)

    def _shell_ended(self, shell: Shell) -> None:
        """By itself (`exit`), by the command's doing, or by ours."""
        message = shell.channel.recv(_CHUNK)
        if not message:
            self._over = "the sandbox keeper was killed"
            return
        code = os.waitstatus_to_exitcode(json.loads(message)["ended"])
        if self._current:
            self._finish(128 - code if code < 0 else code, -code if code < 0 else None, restarted=True)
        self._forget_shell()

    def _forget_shell(self) -> None:
        if shell := self._shell:
            self._shell = self._inside.shell = None
            for descriptor in (shell.channel.fileno(), shell.commands, shell.reports, shell.stdout, shell.stderr):
                self._reactor.off(descriptor)
            shell.close()

    def _check(self, command: _Command) -> None:
        now = time.monotonic()
        if command.killed_by:
            self._press_on(command, now)
        elif now - command.began >= command.wall_seconds:
            self._stop("time")
        elif reason := self._resources.exceeded():
            self._stop(reason)
        elif self._disk.exceeded():
            self._stop("disk")

    def _stop(self, reason: KilledBy) -> None:
        """End what the running command has started; without one, whatever runs in the background."""
        if command := self._current:
            if command.killed_by is None:
                command.killed_by, command.killed_at = reason, time.monotonic()
            send(signal.SIGKILL, self._inside.others() - command.before)
        else:
            send(signal.SIGKILL, self._inside.others())

    def _press_on(self, command: _Command, now: float) -> None:
        send(signal.SIGKILL, self._inside.others() - command.before)
        if now - command.killed_at > _PATIENCE and self._inside.shell:
            send(signal.SIGKILL, [self._inside.shell])

    def _finish(self, exit_code: int, ended_by: int | None, restarted: bool) -> None:
        command, shell = self._current, self._shell
        if command is None:
            return
        if shell:
            self._drain(shell, command)
        counters = self._resources.final(self._running.group.counters() if self._running.group else Counters())
        if command.killed_by is None and exit_code != 0 and (reason := over(counters, self._limits)):
            command.killed_by = reason  # it failed by itself, after the kernel had refused it something
            send(signal.SIGKILL, self._inside.others() - command.before)
        outcome = Outcome(
            exit_code=exit_code,
            signal=ended_by,
            counters=counters,
            killed_by=command.killed_by,
            wall_seconds=time.monotonic() - command.began,
            streams={name: bytes(data) for name, data in command.capture.streams.items()},
            violations=list(self._gates.record),
            violations_dropped=0,
            started=True,
        )
        result = self._sandbox.result(outcome, outcome.violations)
        extra: dict[str, Any] = {"directory": self._directory, "shell_restarted": restarted}
        command.answer.set_result(SessionResult(**dict(result), **extra))
        self._idle()

    def _idle(self) -> None:
        with self._gate:
            self._current = None
            self._gate.notify_all()
        self._reactor.ring()

    def _drain(self, shell: Shell, command: _Command) -> None:
        """What was printed before the report is in the pipes by now."""
        for stream, descriptor in (("stdout", shell.stdout), ("stderr", shell.stderr)):
            while (data := shell.read(descriptor)) and command.capture.add(stream, data):
                pass

    def _fail_waiting(self) -> None:
        reason = SandboxError(self._over or "the session is closed")
        with self._gate:
            unanswered = [command.answer for command in (*self._waiting, *([self._current] if self._current else []))]
            self._waiting.clear()
            self._current = None
        for answer in unanswered:
            if answer.running() or answer.set_running_or_notify_cancel():
                answer.set_exception(reason)

    def _end_sandbox(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._running.pidfd, signal.SIGKILL)
        self._running.channel.settimeout(10)
        with contextlib.suppress(OSError):
            self._running.channel.recv(_CHUNK)
        self._forget_shell()
        self._gates.close()
        self._disk.close()
        self._stack.close()
        self._reactor.close()

    def _tree(self) -> str:
        """The workspace as the host reaches it while the sandbox is up."""
        if self._over or self._inside.anchor is None:
            raise SandboxError(self._over or "the session has not started")
        return self._sandbox.workspace or f"/proc/{self._inside.anchor}/root{WORKSPACE}"


def open_session(spec: Spec, backend: str = "bubblewrap", directory: str | None = None) -> Session:
    """A live sandbox, or an error that says why there cannot be one."""
    sandbox = open_backend(backend).start(spec)
    if not isinstance(sandbox, OneShotSandbox):
        raise Lacking(f"the {backend} sandbox runs single commands only; sessions need bubblewrap or oci")
    if not os.path.exists(BASH):
        raise Lacking(f"a session needs {BASH}: apt-get install bash")
    return Session(sandbox, directory or WORKSPACE)
