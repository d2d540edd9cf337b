"""Notes which files of its workspace a command looks up, reads, lists, writes and executes, and in which process.

The supervisor sees the calls before they are made, so a path is noted whether or not it exists. Of hostile code a note
shows what it asked for; a second thread could change that between the note and the call.
"""

import contextlib
import os

from gametape.sandbox import linux
from gametape.sandbox.result import AccessKind, FileTrace, PathAccess, TracedProcess
from gametape.sandbox.seccomp import LOOK_UPS, NAME_CHANGES, PathArgument

MAX_ACCESSES = 100_000
_MAX_PATH = 4096
_MAX_LINKS = 40
_PAGE = 4096
_MAX_COMMAND = 16_384
_SYSTEM = ("/usr/", "/lib", "/etc/", "/dev/", "/bin/", "/sbin/", "/opt/", "/sys/")
"""Directories that a command cannot write to, and in which no link leads to the workspace."""

TRACED: dict[str, tuple[PathArgument, ...]] = {
    **LOOK_UPS,
    **NAME_CHANGES,
    **dict.fromkeys(("open", "creat", "execve"), ((None, 0),)),
    **dict.fromkeys(("openat", "execveat"), ((0, 1),)),
}
"""The calls that are noted, with the paths among their arguments."""
_FACTS = ("Tgid:", "PPid:", "NSpid:")


class FileTracer:
    """Builds the trace of one sandbox from its notified calls."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._memory = linux.MemoryReader()
        self._accesses: dict[tuple[str, AccessKind, int], None] = {}
        self._processes: list[TracedProcess] = []
        self._numbers: dict[int, int] = {}  # by process id, until it executes another program
        self._before: dict[int, int] = {}  # the program that a process ran before the present one
        self._open_at_start: dict[int, set[str]] = {}  # for the next program of a process
        self._complete = True

    def note(self, call: linux.SyscallNotification, name: str) -> None:
        """Note a call that waits, if it is about a path in the directory."""
        for argument in TRACED.get(name, ()):
            path = self._path(call, argument)
            if path is not None:
                for kind in _kinds(call, name):
                    self._add(path, kind, self._number(call.pid))
        if name in ("execve", "execveat"):
            self._open_at_start[call.pid] = self._files_left_open(call.pid)
            if call.pid in self._numbers:
                self._before[call.pid] = self._numbers.pop(call.pid)

    def trace(self) -> FileTrace:
        accesses = tuple(PathAccess(path=path, kind=kind, process=number) for path, kind, number in self._accesses)
        return FileTrace(accesses=accesses, processes=tuple(self._processes), complete=self._complete)

    def _add(self, path: str, kind: AccessKind, number: int) -> None:
        if len(self._accesses) < MAX_ACCESSES:
            self._accesses[path, kind, number] = None
        else:
            self._complete = False

    def _path(self, call: linux.SyscallNotification, argument: PathArgument) -> str | None:
        """The path that a call names, with links resolved; None if it is outside of the directory."""
        base, at = argument
        path = self._text(call.pid, call.args[at])
        if not path or path.startswith(_SYSTEM):
            return None
        if not path.startswith("/"):
            descriptor = call.args[base] & 0xFFFFFFFF if base is not None else 1 << 31
            from_descriptor = descriptor < 1 << 31
            path = os.path.join(_read_link(call.pid, f"fd/{descriptor}" if from_descriptor else "cwd"), path)
        resolved = self._resolve(call.pid, path)  # each time: the name may have become a link
        return resolved if resolved == self._directory or resolved.startswith(f"{self._directory}/") else None

    def _resolve(self, pid: int, path: str) -> str:
        """Follow links as the process would, without leaving its root. The last part is followed as well."""
        waiting = path.split("/")[::-1]
        done: list[str] = []
        links = 0
        while waiting:
            part = waiting.pop()
            if part in ("", "."):
                continue
            if part == "..":
                done = done[:-1]
                continue
            here = "/" + "/".join([*done, part])
            target = _link_for(pid, here)
            links += bool(target)
            if target and links <= _MAX_LINKS:
                done = [] if target.startswith("/") else done
                waiting += target.split("/")[::-1]
            else:
                done.append(part)
        return "/" + "/".join(done)

    def _number(self, pid: int) -> int:
        """The number of a process in the trace."""
        if pid not in self._numbers:
            status = _status(pid)
            leader = int(status.get("Tgid", pid))
            if leader != pid:
                self._numbers[pid] = self._number(leader)
            else:
                words, directory = _words(pid), _read_link(pid, "cwd")
                parent = self._before.get(pid)
                above = int(status.get("PPid", 0))
                if parent is None and above and len(_status(above).get("NSpid", "").split()) > 1:
                    parent = self._number(above)
                self._numbers[pid] = len(self._processes)
                self._processes.append(TracedProcess(words=words, directory=directory, parent=parent))
                for path in sorted(self._open_at_start.pop(pid, ())):
                    self._add(path, "inherit", self._numbers[pid])
        return self._numbers[pid]

    def _files_left_open(self, pid: int) -> set[str]:
        """The files in the directory that a process has open to be read, and that its next program will have."""
        found: set[str] = set()
        with contextlib.suppress(OSError):
            for number in os.listdir(f"/proc/{pid}/fd"):
                path = _read_link(pid, f"fd/{number}")
                if path.startswith(f"{self._directory}/") and _is_left_open(pid, number):
                    found.add(path)
        return found

    def _text(self, pid: int, address: int) -> str:
        text = b""
        while len(text) < _MAX_PATH and b"\0" not in text:
            at = address + len(text)
            chunk = self._memory.read(pid, at, min(256, _PAGE - at % _PAGE))
            if not chunk:
                break
            text += chunk
        return os.fsdecode(text.partition(b"\0")[0])


def _kinds(call: linux.SyscallNotification, name: str) -> tuple[AccessKind, ...]:
    if name in LOOK_UPS:
        return ("look",)
    if name in ("execve", "execveat"):
        return ("run",)
    if name == "creat" or name in NAME_CHANGES:
        return ("write",)
    return _open_kinds(call.args[2] if name == "openat" else call.args[1])


def _open_kinds(flags: int) -> tuple[AccessKind, ...]:
    if flags & os.O_PATH:
        return ("look",)
    if flags & os.O_DIRECTORY:
        return ("list",)
    if flags & os.O_RDWR:
        return ("write",) if flags & os.O_TRUNC else ("read", "write")
    return ("write",) if flags & os.O_WRONLY else ("read",)


def _link_for(pid: int, path: str) -> str:
    """Where a link leads for a process; empty if the path is no link. Its own links in /proc are known outside only."""
    if path in ("/proc/self", "/proc/thread-self"):
        return f"/proc/{pid}"
    return _link_target(path if path.startswith(f"/proc/{pid}/") else f"/proc/{pid}/root{path}")


def _link_target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _read_link(pid: int, name: str) -> str:
    return _link_target(f"/proc/{pid}/{name}")


def _is_left_open(pid: int, number: str) -> bool:
    """Whether a descriptor can be read, and outlives an exec."""
    try:
        with open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii") as file:
            flags = next(int(line.split()[1], 8) for line in file if line.startswith("flags:"))
    except (OSError, StopIteration):
        return False
    return flags & os.O_ACCMODE != os.O_WRONLY and not flags & os.O_CLOEXEC


def _words(pid: int) -> tuple[str, ...]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return tuple(os.fsdecode(word) for word in file.read(_MAX_COMMAND).rstrip(b"\0").split(b"\0"))
    except OSError:
        return ()


def _status(pid: int) -> dict[str, str]:
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            return dict(line.rstrip().split(":\t", 1) for line in file if line.startswith(_FACTS))
    except (OSError, ValueError):
        return {}
