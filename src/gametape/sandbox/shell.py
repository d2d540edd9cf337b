"""One bash inside a sandbox that stays up, and how the host talks to it.

The shell reads a command up to a NUL from one descriptor, evaluates it with that descriptor and the next one closed,
and reports the exit code and the directory on the other. So the directory, variables, functions and background jobs of
one command are there for the next, and what a command prints can never be taken for a report.
"""

import contextlib
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from gametape.sandbox import kernel
from gametape.sandbox.launcher import Entry, keeper

BASH = "/bin/bash"
_COMMANDS, _REPORTS = 3, 4
_LOOP = (
    f"while IFS= read -r -d '' -u {_COMMANDS} __gametape; do "
    f'eval "$__gametape" </dev/null {_COMMANDS}<&- {_REPORTS}>&-; '
    f"""printf '%s\\0%s\\0' "$?" "$PWD" >&{_REPORTS}; done"""
)
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Report:
    exit_code: int
    directory: str


@dataclass
class Shell:
    """The host's ends of a running shell."""

    channel: socket.socket
    """Says when the shell has ended."""
    listener: int
    """Whoever answers its calls closes it: jobs outlive their shell."""
    commands: int
    reports: int
    stdout: int
    stderr: int
    _unsent: bytes = b""
    _unread: bytes = b""
    _open: set[int] = field(default_factory=set)

    @classmethod
    def start(cls, make_entry: Callable[[list[str]], Entry]) -> "Shell":
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
            channel, listener = keeper().enter(entry, theirs)
        except BaseException:
            for descriptor in ours:
                os.close(descriptor)
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        for descriptor in ours:
            os.set_blocking(descriptor, False)
        kernel.prefer_same_core(listener)
        return cls(channel, listener, commands, reports, stdout, stderr, _open=ours)

    def send(self, command: str) -> None:
        self._unsent += os.fsencode(command) + b"\0"
        self.push()

    def push(self) -> bool:
        """Hand over as much as the shell takes now; True when all is sent."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            while self._unsent:
                self._unsent = self._unsent[os.write(self.commands, self._unsent[:_CHUNK]) :]
        return not self._unsent

    def report(self) -> Report | None:
        """The report that is ready to be read, once it is whole."""
        self._unread += self.read(self.reports) or b""
        parts = self._unread.split(b"\0", 2)
        if len(parts) < 3:
            return None
        code, directory, self._unread = parts
        return Report(int(code) & 0xFF if code.isdigit() else 255, os.fsdecode(directory))

    def read(self, descriptor: int) -> bytes | None:
        """What was printed; nothing at the end; None when there is nothing now."""
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return None

    def close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)
        self._open.clear()
        self.channel.close()
