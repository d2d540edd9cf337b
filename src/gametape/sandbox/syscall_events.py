"""The supervisor's part of the call filter: what to answer a notified call, and what to record.

Until the command is executed inside, the caller is the builder of the sandbox, and every call is allowed.
From then on every notified call is denied and becomes a `PolicyViolation`, except three that are allowed because the
namespaces already make them harmless, whatever their arguments turn into: executing a program, looking up or opening a
file (nothing secret is mounted), and connecting within the sandbox's own network.
"""

import errno
import os
import re
import select
import socket
import struct
import time
from collections.abc import Callable, Iterable

from gametape.sandbox import file_trace, linux, seccomp, syscalls
from gametape.sandbox.keeper_client import SandboxError
from gametape.sandbox.policy import WORKSPACE, SandboxPolicy
from gametape.sandbox.reactor import Reactor
from gametape.sandbox.result import KilledBy, PolicyViolation, ViolationAction

_PAGE = 4096
_LONGEST_TEXT = 512
_LONGEST_COMMAND = 4096
_OPENS = frozenset(("open", "openat"))
_MAKES_A_FILE = seccomp.O_CREAT_OR_TMPFILE
_EXECS = frozenset(("execve", "execveat"))
_DIALS = frozenset(("connect", "sendto"))
_INSIDE = ("unix:", "AF_UNSPEC", "127.", "0.0.0.0:", "[::1]", "[::]", "[::ffff:127.")
_ERRORS = {
    "socket": errno.EAFNOSUPPORT,
    "socketpair": errno.EAFNOSUPPORT,
    "connect": errno.ENETUNREACH,
    "sendto": errno.ENETUNREACH,
}

# Which arguments are worth reading, by kind: s a string in memory, a a socket address, i a number.
_SIGNATURES = {
    "mount": "sssis",
    "umount2": "si",
    "pivot_root": "ss",
    "chroot": "s",
    "open_tree": "isi",
    "open_tree_attr": "isi",
    "move_mount": "isisi",
    "fsopen": "si",
    "fspick": "isi",
    "mount_setattr": "isi",
    "add_key": "ss",
    "request_key": "ss",
    "sethostname": "si",
    "setdomainname": "si",
    "swapon": "si",
    "swapoff": "s",
    "acct": "s",
    "quotactl": "isi",
    "init_module": "iis",
    "delete_module": "si",
    "name_to_handle_at": "is",
    "mknod": "sii",
    "mknodat": "isii",
    "chmod": "si",
    "fchmodat": "isi",
    "fchmodat2": "isii",
    "creat": "si",
    "open": "sii",
    "openat": "isii",
    "connect": "ia",
    "sendto": "iiiia",
    "uselib": "s",
}
_FAMILY_NAMES = {family.value: family.name for family in socket.AddressFamily}
_TYPE_NAMES = {kind.value: kind.name for kind in socket.SocketKind}


class SyscallHandler:
    """Answers the notifications of one sandbox and records violations."""

    def __init__(
        self,
        policy: SandboxPolicy,
        granted: Iterable[str],
        on_start: Callable[[int], None],
        may_fork: Callable[[], bool],
        command_is_first: bool = False,
    ) -> None:
        self.violations: list[PolicyViolation] = []
        self.dropped = 0
        self.command_started = False
        self._policy = policy
        self._granted = tuple(f"{path}/" for path in granted)
        self._watched = tuple(f"{path}/" for path in policy.watched)
        self._audit = _audit_pattern(policy.audited)
        self._audited: set[str] = set()
        self._on_start = on_start
        self._may_fork = may_fork
        self._command_is_first = command_is_first
        self._memory = linux.MemoryReader()
        self.tracer = file_trace.FileTracer(WORKSPACE) if policy.trace_files != "none" else None

    def answer(self, listener: int) -> KilledBy | None:
        """Answer one waiting call. Returns the reason when the sandbox must be killed for it."""
        call = linux.receive_notification(listener)
        if call is None:
            return None
        name = syscalls.describe(call.number, call.arch)
        if not self.command_started:
            self._watch_builder(call.pid, name)
        elif _is_fork(call, name):
            if not self._may_fork():
                return "processes"
        elif not self._is_allowed(call, name):
            return "policy" if self._deny(listener, call, name) else None
        elif self.tracer:
            self.tracer.note(call, name)
        linux.answer_notification(listener, call, None)
        return None

    def _is_allowed(self, call: linux.SyscallNotification, name: str) -> bool:
        if name in _OPENS:
            return not self._refuses_open(call, name)
        if name in _DIALS:
            return self._stays_inside(call, name)
        if name == "creat":
            return self.tracer is not None and not call.args[1] & seccomp.SETID_BITS
        return name in _EXECS or (self.tracer is not None and name in file_trace.TRACED)

    def _watch_builder(self, pid: int, name: str) -> None:
        """The command is the first program that is executed under another root than the host's by any process but the
        builder's own first one there."""
        if name not in _EXECS or _same_root(pid):
            return
        if self._command_is_first or not _is_first_process(pid):
            self._on_start(pid)
            self.command_started = True

    def _deny(self, listener: int, call: linux.SyscallNotification, name: str) -> bool:
        kill = self._policy.on_violation == "kill"
        record = self._record(call, name, self._describe(call, name), "killed" if kill else "denied")
        if not linux.still_waiting(listener, call):
            record = record.model_copy(update={"command": ""})  # the number may be another process's by now
        self.dropped += not self._note(record)
        if kill or self.dropped:
            return True
        linux.answer_notification(listener, call, _ERRORS.get(name, errno.ENOENT if name in _OPENS else errno.EPERM))
        return False

    def _record(
        self, call: linux.SyscallNotification, name: str, args: tuple[str | int, ...], action: ViolationAction
    ) -> PolicyViolation:
        who = _command(call.pid)
        return PolicyViolation(syscall=name, args=args, pid=call.pid, command=who, time=time.time(), action=action)

    def _note(self, record: PolicyViolation) -> bool:
        room = len(self.violations) < self._policy.max_violations
        if room:
            self.violations.append(record)
        return room

    def _refuses_open(self, call: linux.SyscallNotification, name: str) -> bool:
        """Whether to deny an open: of a watched path that was not granted, or of a new set-id file."""
        at, flags, mode = call.args[1:4] if name == "openat" else call.args[0:3]
        if flags & _MAKES_A_FILE and mode & seccomp.SETID_BITS:
            return True
        path = self._text(call.pid, at)
        if not path.startswith("/"):
            base = _link(call.pid, f"fd/{call.args[0]}") if name == "openat" and call.args[0] < 1 << 31 else ""
            path = os.path.join(base or _link(call.pid, "cwd"), path)
        if ".." in path or "//" in path or "/./" in path:
            path = os.path.normpath(path)
        prefix = path + "/"
        if prefix.startswith(self._watched) and not prefix.startswith(self._granted):
            return True
        if self._audit and self._audit.search(prefix) and path not in self._audited:
            self._audited.add(path)
            self._note(self._record(call, name, (path, flags), "logged"))
        return False

    def _stays_inside(self, call: linux.SyscallNotification, name: str) -> bool:
        at, length = (call.args[1], call.args[2]) if name == "connect" else (call.args[4], call.args[5])
        address = self._address(call.pid, at, length)
        return address.startswith(_INSIDE)

    def _describe(self, call: linux.SyscallNotification, name: str) -> tuple[str | int, ...]:
        if name in ("socket", "socketpair"):
            family, kind = call.args[0] & 0xFFFFFFFF, call.args[1] & 0xF
            return (_FAMILY_NAMES.get(family, family), _TYPE_NAMES.get(kind, kind), call.args[2])
        kinds = _SIGNATURES.get(name, "iiiiii")
        return tuple(self._argument(call, index, kind) for index, kind in enumerate(kinds))

    def _argument(self, call: linux.SyscallNotification, index: int, kind: str) -> str | int:
        value = call.args[index]
        if kind == "s":
            return self._text(call.pid, value)
        if kind == "a":
            return self._address(call.pid, value, call.args[index + 1])
        return _signed(value)

    def _text(self, pid: int, address: int) -> str:
        """The string at an address of another process, cut at `_LONGEST_TEXT`."""
        text = b""
        while len(text) < _LONGEST_TEXT and b"\0" not in text:
            at = address + len(text)
            chunk = self._memory.read(pid, at, min(256, _PAGE - at % _PAGE))
            if not chunk:
                break
            text += chunk
        return text.partition(b"\0")[0][:_LONGEST_TEXT].decode(errors="replace")

    def _address(self, pid: int, at: int, length: int) -> str:
        return _show_address(self._memory.read(pid, at, min(length & 0xFFFFFFFF, 128)))


def _signed(value: int) -> int:
    """A register's value with small negative numbers as such."""
    for width in (64, 32):
        if (1 << width) - 4096 <= value < 1 << width:
            return value - (1 << width)
    return value


def _audit_pattern(patterns: Iterable[str]) -> re.Pattern[str] | None:
    """One expression for all audited paths, to be searched in a path with a slash appended."""
    expressions = []
    for pattern in patterns:
        if pattern.startswith("/"):
            expressions.append(f"^{re.escape(pattern.rstrip('/'))}/")
        elif pattern.startswith("*"):
            expressions.append(f"{re.escape(pattern[1:])}/")
        else:
            expressions.append(f"/{re.escape(pattern)}/")
    return re.compile("|".join(expressions)) if expressions else None


def _is_fork(call: linux.SyscallNotification, name: str) -> bool:
    """Whether a call makes one more process in the same namespaces."""
    return name in ("fork", "vfork") or (name == "clone" and not call.args[0] & seccomp.NEW_NAMESPACE_FLAGS)


def _same_root(pid: int) -> bool:
    """Whether a process still has the host's root. If that is unknown the answer is no, which fails closed."""
    try:
        return os.path.samestat(os.stat(f"/proc/{pid}/root"), os.stat("/"))
    except OSError:
        return False


def _is_first_process(pid: int) -> bool:
    """Whether a process is number 1 of a process namespace below ours. If that is unknown the answer is no, which fails
    closed."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            numbers = next(line for line in file if line.startswith("NStgid:")).split()[1:]
    except (OSError, StopIteration):
        return False
    return len(numbers) > 1 and numbers[-1] == "1"


def _show_address(raw: bytes) -> str:
    """A socket address in the usual notation."""
    if len(raw) < 2:
        return ""
    (family,) = struct.unpack_from("=H", raw)
    if family == socket.AF_UNIX:
        abstract = raw[2:3] == b"\0"
        name = raw[3:] if abstract else raw[2:].partition(b"\0")[0]
        return f"unix:{'@' if abstract else ''}{name.decode(errors='replace')}"
    if family == socket.AF_INET and len(raw) >= 8:
        return f"{socket.inet_ntop(socket.AF_INET, raw[4:8])}:{int.from_bytes(raw[2:4], 'big')}"
    if family == socket.AF_INET6 and len(raw) >= 24:
        return f"[{socket.inet_ntop(socket.AF_INET6, raw[8:24])}]:{int.from_bytes(raw[2:4], 'big')}"
    return _FAMILY_NAMES.get(family, f"family {family}")


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read(_LONGEST_COMMAND).replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def _link(pid: int, name: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/{name}")
    except OSError:
        return ""


class SessionSyscallHandlers:
    """Answers every listener of a session. Jobs outlive their shell, so a listener is closed with the last of them."""

    def __init__(
        self,
        policy: SandboxPolicy,
        granted: tuple[str, ...],
        reactor: Reactor,
        may_fork: Callable[[], bool],
        stop: Callable[[KilledBy], None],
    ) -> None:
        self._policy = policy
        self._granted = granted
        self._reactor = reactor
        self._may_fork = may_fork
        self._stop = stop
        self._handlers: dict[int, SyscallHandler] = {}  # by listener
        self.record: list[PolicyViolation] = []

    def listen(self, listener: int | None, on_start: Callable[[int], None]) -> None:
        """Take over a listener; `on_start` gets the number of the first process that executes a program."""
        if listener is None:
            raise SandboxError("a session needs the call filter")
        handler = SyscallHandler(self._policy, self._granted, on_start, self._may_fork, command_is_first=True)
        handler.violations = self.record
        self._handlers[listener] = handler

        def answer(event: int) -> None:
            if not event & select.POLLIN:
                self._leave(listener)  # the last process under this filter is gone
            elif reason := handler.answer(listener):
                self._stop(reason)

        self._reactor.register(listener, answer)

    def clear_record(self) -> None:
        """Forget the violations of the command before."""
        self.record.clear()
        for handler in self._handlers.values():
            handler.dropped = 0

    def close(self) -> None:
        for listener in list(self._handlers):
            self._leave(listener)

    def _leave(self, listener: int) -> None:
        self._reactor.unregister(listener)
        if self._handlers.pop(listener, None):
            os.close(listener)
