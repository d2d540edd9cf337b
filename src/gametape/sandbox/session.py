"""A sandbox that stays up: many commands in one shell, under the same policy, watched by one thread.

The sandbox is held open by a process that does nothing (the anchor). The shell is a second process inside, so a command
that ends its shell, or has to be killed with it, costs a new shell and not the sandbox: files, background jobs and the
record of violations stay.
"""

import contextlib
import json
import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from gametape.core.errors import BadInput, MissingDependency
from gametape.sandbox.backend import SandboxSpec, open_backend
from gametape.sandbox.cgroups import ResourceCounters
from gametape.sandbox.keeper_client import EnterPlan, SandboxError
from gametape.sandbox.oneshot import OneShotSandbox, with_requests
from gametape.sandbox.output import OutputCapture, sanitize, secret_values
from gametape.sandbox.persistent import PersistentSandbox
from gametape.sandbox.policy import WORKSPACE
from gametape.sandbox.resource_watch import continue_processes, exceeded_limit, signal_all
from gametape.sandbox.result import KilledBy, SessionResult
from gametape.sandbox.shell import BASH, GarbledReport, SandboxShell
from gametape.sandbox.supervisor import CHUNK, RawOutcome

_PATIENCE = 0.3
"""Seconds between killing a command's processes and killing a shell that still does not answer."""


@dataclass
class _Command:
    text: str
    wall_seconds: float
    capture: OutputCapture
    answer: "Future[SessionResult]" = field(default_factory=Future)
    began: float = 0.0
    before: frozenset[int] = frozenset()
    killed_by: KilledBy | None = None
    killed_at: float = 0.0


class ShellSession(PersistentSandbox):
    """One live sandbox. `run` may be called from any thread; commands run one after the other."""

    def __init__(self, sandbox: OneShotSandbox, directory: str = WORKSPACE) -> None:
        self._shell: SandboxShell | None = None
        self._directory = directory
        self._waiting: deque[_Command] = deque()
        self._current: _Command | None = None
        self._interrupted = False
        self._held = False
        super().__init__(sandbox)

    def run(self, command: str, wall_seconds: float | None = None) -> SessionResult:
        """Run a shell command and wait for it. It sees what earlier ones left: directory, variables, jobs."""
        return self.submit(command, wall_seconds).result()

    def submit(self, command: str, wall_seconds: float | None = None) -> "Future[SessionResult]":
        """The same as `run` without waiting."""
        if "\0" in command or not _is_text(command):
            raise BadInput("a command cannot hold a NUL byte, or half of a surrogate pair")
        task = _Command(command, wall_seconds or self._limits.wall_seconds, OutputCapture(self._limits.output_bytes))
        self._waiting.append(task)
        self._reactor.wake()
        if self._end_reason:
            self._fail_waiting()
        return task.answer

    def interrupt(self) -> None:
        """Kill the command that is running now, as if its time were up."""
        self._interrupted = True
        self._reactor.wake()

    @property
    def directory(self) -> str:
        """Where the shell is."""
        return self._directory

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Between two commands: nothing inside runs, so that its files can be read."""
        with self._changed:
            self._held = True
            self._changed.wait_for(lambda: self._current is None or self._end_reason)
        stopped = self._processes.pause()
        try:
            yield
        finally:
            continue_processes(stopped)
            self._held = False
            self._reactor.wake()

    def _prepare(self) -> None:
        self._new_shell()

    def _tick(self) -> bool:
        if self._current:
            self._check(self._current)
            return True
        return self._check_jobs()

    def _on_gone(self) -> None:
        self._forget_shell()
        self._fail_waiting()
        self._idle()

    def _on_wake(self) -> None:
        if self._interrupted:
            self._interrupted = False
            if self._current:
                self._stop("time")
        self._begin_next()

    def _begin_next(self) -> None:
        with self._changed:
            if self._current or self._held or not self._waiting or self._end_reason:
                return
            command = self._current = self._waiting.popleft()
        if not command.answer.set_running_or_notify_cancel():
            self._idle()
            return
        self._syscalls.clear_record()
        self._resources.reset()
        self._disk.reset_baseline()
        try:
            shell = self._trusted_shell()
        except (SandboxError, OSError) as error:
            self._idle()
            command.answer.set_exception(SandboxError(f"no shell could be started in the sandbox: {error}"))
            return
        command.before = self._processes.all()
        command.began = time.monotonic()
        shell.send(command.text)
        if not shell.push():
            self._reactor.register(shell.commands, lambda _event: self._push(shell), select.POLLOUT)

    def _trusted_shell(self) -> SandboxShell:
        """A shell that waits for a command. One that does not is killed, and so are processes that keep new ones from
        starting."""
        deadline = time.monotonic() + _PATIENCE
        while self._shell and self._processes.shell and time.monotonic() < deadline:
            if SandboxShell.is_waiting(self._processes.shell):
                return self._shell
            time.sleep(0.0002)
        if self._shell and not self._processes.shell:
            return self._shell  # it is on its way
        self._drop_shell()
        try:
            return self._new_shell()
        except SandboxError:
            signal_all(signal.SIGKILL, self._processes.others())
            return self._new_shell()

    def _drop_shell(self) -> None:
        if self._shell:
            signal_all(signal.SIGKILL, [self._shell.entered.outer])
            self._forget_shell()

    def _push(self, shell: SandboxShell) -> None:
        if shell.push():
            self._reactor.unregister(shell.commands)

    def _new_shell(self) -> SandboxShell:
        shell = self._shell = SandboxShell.start(self._entry)
        self._syscalls.listen(shell.entered.listener, self._shell_started)
        self._reactor.register(shell.entered.channel.fileno(), lambda _event: self._shell_ended(shell))
        self._reactor.register(shell.reports, lambda event: self._reported(shell, event))
        for stream, descriptor in (("stdout", shell.stdout), ("stderr", shell.stderr)):
            self._reactor.register(descriptor, self._printer(shell, stream, descriptor))
        return shell

    def _shell_started(self, pid: int) -> None:
        self._processes.shell = pid

    def _entry(self, argv: list[str]) -> EnterPlan:
        if self._processes.anchor is None:
            raise SandboxError("the sandbox has not started")
        plan = self._sandbox.plan(argv)
        return EnterPlan(
            inner=self._processes.anchor,
            group=self._running.group,
            command=argv,
            directory=self._directory,
            filter=plan.filter,
            rlimits=plan.rlimits,
            environment=self._sandbox.environment(),
        )

    def _printer(self, shell: SandboxShell, stream: str, descriptor: int) -> Callable[[int], None]:
        def read(_event: int) -> None:
            data = shell.read(descriptor)
            if data == b"":
                self._reactor.unregister(descriptor)
            elif data and self._current and not self._current.capture.add(stream, data):
                self._stop("output")

        return read

    def _reported(self, shell: SandboxShell, event: int) -> None:
        if not event & select.POLLIN:
            self._reactor.unregister(shell.reports)
            return
        try:
            report = shell.report()
        except GarbledReport:  # a process inside has found the pipe: this shell's reports cannot be trusted any more
            self._finish(255, None, restarted=True)
            self._drop_shell()
            return
        if report and self._current:
            self._directory = report.directory
            self._finish(report.exit_code, None, restarted=False)

    def _shell_ended(self, shell: SandboxShell) -> None:
        """The shell ended itself (`exit`), or the command or we killed it."""
        message = shell.entered.channel.recv(CHUNK)
        if not message:
            self._end_reason = "the sandbox keeper was killed"
            return
        code = os.waitstatus_to_exitcode(json.loads(message)["ended"])
        if self._current:
            self._finish(128 - code if code < 0 else code, -code if code < 0 else None, restarted=True)
        self._forget_shell()

    def _forget_shell(self) -> None:
        if shell := self._shell:
            self._shell = self._processes.shell = None
            for descriptor in (
                shell.entered.channel.fileno(),
                shell.commands,
                shell.reports,
                shell.stdout,
                shell.stderr,
            ):
                self._reactor.unregister(descriptor)
            shell.close()

    def _check(self, command: _Command) -> None:
        now = time.monotonic()
        if command.killed_by:
            self._kill_again(command, now)
        elif now - command.began >= command.wall_seconds:
            self._stop("time")
        elif reason := self._resources.exceeded():
            self._stop(reason)
        elif self._disk.exceeded():
            self._stop("disk")

    def _check_jobs(self) -> bool:
        """Between commands the limits hold too. Returns whether there are any jobs."""
        jobs = self._processes.others()
        if jobs and (self._resources.exceeded() or self._disk.exceeded()):
            signal_all(signal.SIGKILL, jobs)
            self._resources.reset()
            self._disk.reset_baseline()
        return bool(jobs)

    def _stop(self, reason: KilledBy) -> None:
        """Kill what the running command has started; without one, the background jobs."""
        command = self._current
        if command and command.killed_by is None:
            command.killed_by, command.killed_at = reason, time.monotonic()
        signal_all(signal.SIGKILL, self._processes.others() - self._spared(reason))

    def _spared(self, reason: KilledBy) -> frozenset[int]:
        """Jobs of earlier commands that are not killed, unless they may be what exceeds a polled limit."""
        held = reason in ("time", "output", "policy") or (reason != "disk" and self._running.group is not None)
        return self._current.before if self._current and held else frozenset()

    def _kill_again(self, command: _Command, now: float) -> None:
        signal_all(signal.SIGKILL, self._processes.others() - self._spared(command.killed_by or "time"))
        if now - command.killed_at > _PATIENCE and self._shell:
            signal_all(signal.SIGKILL, [self._shell.entered.outer])

    def _finish(self, exit_code: int, ended_by: int | None, restarted: bool) -> None:
        command, shell = self._current, self._shell
        if command is None:
            return
        if shell:
            self._drain(shell, command)
        counters = self._resources.final_counters(
            self._running.group.counters() if self._running.group else ResourceCounters()
        )
        if command.killed_by is None and exit_code != 0 and (reason := exceeded_limit(counters, self._limits)):
            command.killed_by = reason  # it failed by itself, after the kernel had refused it something
            signal_all(signal.SIGKILL, self._processes.others() - command.before)
        outcome = RawOutcome(
            exit_code=exit_code,
            signal=ended_by,
            counters=counters,
            killed_by=command.killed_by,
            wall_seconds=time.monotonic() - command.began,
            streams={name: bytes(data) for name, data in command.capture.streams.items()},
            violations=list(self._syscalls.record),
            violations_dropped=0,
            started=True,
        )
        result = with_requests(self._sandbox.result(outcome, outcome.violations), self._network)
        directory = sanitize(self._directory, secret_values(os.environ))
        extra: dict[str, Any] = {"directory": directory, "shell_restarted": restarted}
        command.answer.set_result(SessionResult(**dict(result), **extra))
        self._idle()

    def _idle(self) -> None:
        self._resources.reset()
        self._disk.reset_baseline()
        with self._changed:
            self._current = None
            self._changed.notify_all()
        self._reactor.wake()

    def _drain(self, shell: SandboxShell, command: _Command) -> None:
        """Read what was printed before the report, which is in the pipes by now."""
        for stream, descriptor in (("stdout", shell.stdout), ("stderr", shell.stderr)):
            while (data := shell.read(descriptor)) and command.capture.add(stream, data):
                pass

    def _fail_waiting(self) -> None:
        reason = SandboxError(self._end_reason or "the session is closed")
        with self._changed:
            unanswered = [command.answer for command in (*self._waiting, *([self._current] if self._current else []))]
            self._waiting.clear()
            self._current = None
        for answer in unanswered:
            if answer.running() or answer.set_running_or_notify_cancel():
                answer.set_exception(reason)


def _is_text(command: str) -> bool:
    try:
        command.encode()
    except UnicodeEncodeError:
        return False
    return True


def open_session(spec: SandboxSpec, backend: str = "bubblewrap", directory: str | None = None) -> ShellSession:
    """Open a live sandbox, or raise an error that says why there cannot be one."""
    sandbox = open_backend(backend).start(spec)
    if not isinstance(sandbox, OneShotSandbox):
        raise MissingDependency(f"the {backend} sandbox runs single commands only; sessions need bubblewrap or oci")
    if not os.path.exists(BASH):
        raise MissingDependency(f"a session needs {BASH}: apt-get install bash")
    return ShellSession(sandbox, directory or WORKSPACE)
