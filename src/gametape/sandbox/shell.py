"""One bash inside a sandbox that stays up, and how the host talks to it.

The shell reads a token and a command, each up to a NUL, from one descriptor, evaluates the command with that descriptor
and the next one closed, and reports the token, the exit code and the directory on the other. So the directory,
variables, functions and background jobs of one command are there for the next, and what a command prints is never
taken for a report. It can still find the shell's own descriptors and report too early: the token makes a late report
worthless, and `is_waiting` tells whether the shell is really done.
"""

import contextlib
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from gametape.sandbox import linux, syscalls
from gametape.sandbox.keeper_client import EnteredProcess, EnterPlan, keeper

BASH = "/bin/bash"
_COMMANDS, _REPORTS = 3, 4
_LOOP = (
    f"while IFS= read -r -d '' -u {_COMMANDS} __token && IFS= read -r -d '' -u {_COMMANDS} __command; do "
    f'eval "$__command" </dev/null {_COMMANDS}<&- {_REPORTS}>&-; '
    f"""printf '%s\\0%s\\0%s\\0' "$__token" "$?" "$PWD" >&{_REPORTS}; done"""
)
_LONGEST_REPORT = 8192
_CHUNK = 1 << 16


@dataclass(frozen=True)
class ShellReport:
    exit_code: int
    directory: str


class GarbledReport(Exception):
    """What was read is no report of the running command: another process wrote it."""


@dataclass
class SandboxShell:
    """The host's ends of a running shell."""

    entered: EnteredProcess
    commands: int
    reports: int
    stdout: int
    stderr: int
    _unsent: bytes = b""
    _unread: bytes = b""
    _token: bytes = b""
    _open: set[int] = field(default_factory=set)

    @classmethod
    def start(cls, make_entry: Callable[[list[str]], EnterPlan]) -> "SandboxShell":
        """Send a shell into a sandbox. Its first notified call is its own execution: answer it."""
        commands_in, commands = os.pipe2(os.O_CLOEXEC)
        reports, reports_out = os.pipe2(os.O_CLOEXEC)
        stdout, stdout_in = os.pipe2(os.O_CLOEXEC)
        stderr, stderr_in = os.pipe2(os.O_CLOEXEC)
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        theirs = [nothing, stdout_in, stderr_in, commands_in, reports_out]
        ours = {commands, reports, stdout, stderr}
        try:
            entry = make_entry([BASH, "--noprofile", "--norc", "-c", _LOOP])
            entered = keeper().enter(entry, theirs)
        except BaseException:
            for descriptor in ours:
                os.close(descriptor)
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        for descriptor in ours:
            os.set_blocking(descriptor, False)
        linux.prefer_same_core(entered.listener)
        return cls(entered, commands, reports, stdout, stderr, _open=ours)

    def send(self, command: str) -> None:
        self._token = secrets.token_hex(8).encode()
        self._unsent += self._token + b"\0" + os.fsencode(command) + b"\0"
        self.push()

    def push(self) -> bool:
        """Send as much as the shell takes now; True when all is sent."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            while self._unsent:
                self._unsent = self._unsent[os.write(self.commands, self._unsent[:_CHUNK]) :]
        return not self._unsent

    def report(self) -> ShellReport | None:
        """The report on the last command, or None while it is incomplete."""
        self._unread += self.read(self.reports) or b""
        if len(self._unread) > _LONGEST_REPORT:
            raise GarbledReport
        parts = self._unread.split(b"\0")
        if len(parts) < 4:
            return None
        token, code, directory, *rest = parts
        if rest != [b""] or token != self._token or not (code.isdigit() and len(code) < 4) or directory[:1] != b"/":
            raise GarbledReport
        self._unread = self._token = b""
        return ShellReport(int(code) & 0xFF, os.fsdecode(directory))

    @staticmethod
    def is_waiting(pid: int) -> bool:
        """Whether the shell waits for a command, and for nothing else."""
        with contextlib.suppress(OSError), open(f"/proc/{pid}/syscall", encoding="ascii") as file:
            return file.read().startswith(f"{syscalls.numbers()['read']} {_COMMANDS:#x} ")
        return False

    def read(self, descriptor: int) -> bytes | None:
        """What was printed; empty at the end of the stream; None when there is nothing now."""
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return None

    def close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)
        self._open.clear()
        self.entered.channel.close()
