"""The host's end of the keeper: one keeper per process, started at the first launch."""

import atexit
import base64
import contextlib
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gametape.core.errors import GametapeError, MissingDependency
from gametape.sandbox import cgroups, linux
from gametape.sandbox.snapshots.overlay import MountPlan

_ROOT = str(Path(__file__).resolve().parents[2])
_PATIENCE = 5.0
_START = "import sys; sys.path.insert(0, sys.argv[2]); from gametape.sandbox.keeper import main; main()"


class SandboxError(GametapeError):
    """The sandbox itself could not do its work; nothing can be said about the command."""

    exit_code = 3


CommandWord = str | dict[str, Any]
"""A word of a command line, or a file in memory whose number becomes one: `{"text": ...}` holds a text, `{"list": ...}`
words, each with a NUL behind it."""


@dataclass(frozen=True)
class StagedEntry:
    """Something mounted for the builder in the staging directory, in a private mount namespace: a path of the host, as
    if the sandbox's user owned it; or a new directory with small files, in which `@UID@` stands for that user (`name/`
    is a directory, `name@` a link); or a directory of the host that the builder must find empty; or a new file system
    in memory with some directories."""

    source: str | None = None
    files: dict[str, str] | None = None
    covered: str | None = None
    view: MountPlan | None = None
    """With a view, `source` is the store that holds it."""
    scratch: "ScratchDisk | None" = None

    @classmethod
    def of(cls, source: str, view: MountPlan | None) -> "StagedEntry":
        return cls(source=view.root, view=view) if view else cls(source=source)


@dataclass(frozen=True)
class ScratchDisk:
    """A file system in memory that the sandbox's user may write to."""

    directories: dict[str, int]
    """Their modes, by name."""
    size_bytes: int | None
    """How much fits, which is half of the machine's memory without a number; `files` likewise."""
    files: int | None


@dataclass(frozen=True)
class LaunchPlan:
    """Everything the keeper needs to start one sandbox. Plain data."""

    command: list[CommandWord]
    drop: bool
    stage: list[StagedEntry] = field(default_factory=list)
    filter: bytes = b""
    rlimits: dict[str, int] = field(default_factory=dict)
    layout: cgroups.CgroupLayout | None = None
    memory_bytes: int = 0
    processes: int = 0
    environment: dict[str, str] = field(default_factory=dict)
    inner_users: int | None = None
    """With a number, the builder starts as root of a user namespace of its own, in which so many more can be made. The
    plan must stage something then."""

    def request(self) -> bytes:
        """What the keeper itself needs to know."""
        layout = self.layout and dataclasses.asdict(self.layout)
        sources = [entry.source for entry in self.stage if entry.source]
        numbers = {"memory_bytes": self.memory_bytes, "processes": self.processes}
        return json.dumps({"drop": self.drop, "layout": layout, "sources": sources, **numbers}).encode()

    def details(self) -> bytes:
        """What only the child that becomes the sandbox reads. It may be long."""
        document = {
            "command": self.command,
            "stage": [dataclasses.asdict(entry) for entry in self.stage],
            "filter": base64.b64encode(self.filter).decode(),
            "rlimits": self.rlimits,
            "environment": self.environment,
            "inner_users": self.inner_users,
        }
        return json.dumps(document).encode()


@dataclass(frozen=True)
class EnterPlan:
    """One more process for a running sandbox. Plain data."""

    inner: int
    """A process that is inside, by its number outside."""
    group: cgroups.ControlGroup | None
    command: list[str]
    directory: str
    filter: bytes
    rlimits: dict[str, int]
    environment: dict[str, str]

    def request(self) -> bytes:
        return json.dumps({"enter": self.inner, "group": self.group and dataclasses.asdict(self.group)}).encode()

    def details(self) -> bytes:
        names = ("command", "directory", "rlimits", "environment")
        document = {name: getattr(self, name) for name in names}
        return json.dumps({**document, "filter": base64.b64encode(self.filter).decode()}).encode()


@dataclass(frozen=True)
class EnteredProcess:
    """A process that was started in a running sandbox."""

    channel: socket.socket
    """Says when it has ended."""
    outer: int
    """Its parent outside: killing that kills it."""
    listener: int
    """The caller answers its notifications and closes it."""


@dataclass
class RunningSandbox:
    """A sandbox between its start and its end."""

    channel: socket.socket
    pid: int
    pidfd: int
    listener: int | None
    group: cgroups.ControlGroup | None

    def take_listener(self) -> int | None:
        """The caller must close it."""
        listener, self.listener = self.listener, None
        return listener

    def close(self) -> None:
        self.channel.close()
        os.close(self.pidfd)
        if self.listener is not None:
            os.close(self.listener)


class KeeperClient:
    """Starts the keeper and talks to it. Safe to use from many threads."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-I", "-S", "-B", "-c", _START, str(theirs.fileno()), _ROOT]
        self._process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,
        )
        theirs.close()
        self._control = ours
        self.owner = os.getpid()

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        return self.owner == os.getpid() and self._process.poll() is None

    def launch(self, plan: LaunchPlan, stdio: list[int]) -> RunningSandbox:
        """Start a sandbox; the descriptors in `stdio` become the command's 0, 1, 2 (and 3)."""
        channel = self._send(plan.request(), plan.details(), stdio)
        try:
            answer, (pidfd, *listener) = self._answer(channel, "ready")
        except SandboxError:
            channel.close()
            raise
        group = cgroups.ControlGroup(**answer["group"]) if answer["group"] else None
        return RunningSandbox(channel, answer["ready"], pidfd, listener[0] if listener else None, group)

    def _send(self, request: bytes, details: bytes, stdio: list[int]) -> socket.socket:
        """One request; the channel will carry its answers."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        details_file = os.memfd_create("gametape-plan")
        try:
            with open(details_file, "wb", closefd=False) as file:
                file.write(details)
            os.lseek(details_file, 0, os.SEEK_SET)
            socket.send_fds(self._control, [request], [details_file, theirs.fileno(), *stdio])
        except OSError as error:
            ours.close()
            raise SandboxError(f"the sandbox keeper is gone ({error.strerror}); start the program again") from error
        finally:
            os.close(details_file)
            theirs.close()
        return ours

    def _answer(self, channel: socket.socket, awaited: str) -> tuple[dict[str, Any], list[int]]:
        message, descriptors = linux.receive_descriptors(channel, 2)
        answer: dict[str, Any] = json.loads(message) if message else {"error": "the sandbox keeper is gone"}
        if awaited not in answer:
            reason = answer.get("error", "it was killed on the way, perhaps by its memory limit")
            raise SandboxError(f"the sandbox could not be started: {reason}")
        return answer, descriptors

    def enter(self, entry: EnterPlan, stdio: list[int]) -> EnteredProcess:
        """Start one more process in a running sandbox. Processes inside may hinder it, so there is a time-out."""
        channel = self._send(entry.request(), entry.details(), stdio)
        channel.settimeout(_PATIENCE)
        outer: int | None = None
        try:
            outer = self._answer(channel, "outer")[0]["outer"]
            _answer, descriptors = self._answer(channel, "ready")
        except (SandboxError, OSError) as error:
            if outer:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(outer, signal.SIGKILL)
            channel.close()
            raise SandboxError(f"no process could be sent into the sandbox: {error}") from error
        channel.settimeout(None)
        return EnteredProcess(channel, outer, descriptors[0])

    def listen_inside(self, pid: int, port: int) -> socket.socket:
        """A socket that listens on the loopback of the sandbox to which a process belongs."""
        request = json.dumps({"listen": pid, "port": port}).encode()
        with self._send(request, b"", []) as channel:
            _answer, descriptors = self._answer(channel, "listening")
        return socket.socket(fileno=descriptors[0])

    def close(self) -> None:
        """Let the keeper kill its sandboxes and exit, and wait for that."""
        self._control.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()


_lock = threading.Lock()
_client: KeeperClient | None = None


def keeper() -> KeeperClient:
    """This process's keeper. A forked child of the host gets one of its own."""
    global _client  # noqa: PLW0603 - the one per-process resource, like a connection pool
    with _lock:
        if _client is None or not _client.alive():
            if not sys.platform.startswith("linux"):
                raise MissingDependency("sandboxes need Linux; on other systems gametape is for development only")
            if layout := cgroups.find_layout():
                cgroups.remove_orphaned_groups(layout)
            _client = KeeperClient()
        return _client


def close_keeper() -> None:
    """End this process's keeper and all its sandboxes."""
    global _client  # noqa: PLW0603
    with _lock:
        if _client is not None and _client.owner == os.getpid():
            _client.close()
        _client = None


atexit.register(close_keeper)
