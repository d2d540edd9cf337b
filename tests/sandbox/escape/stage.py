"""The host as the probes find it: secrets, listeners, a victim process, shared memory; and whether it was harmed.

Works for root and for an ordinary user, and without pytest: the ordinary-user run plants its own.
"""

import contextlib
import ctypes
import fcntl
import os
import platform
import secrets
import selectors
import shutil
import site
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gametape
from gametape.sandbox import cgroups, keeper_client

_libc = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p


class Stage:
    """Everything planted, and the facts that the probes are told."""

    def __init__(self) -> None:
        self.secret = "planted-" + secrets.token_hex(12)
        self.top = Path(tempfile.mkdtemp(prefix="gametape-stage-"))
        self.top.chmod(0o755)
        self.outside = self.top / "outside"
        self.outside.mkdir(mode=0o755)
        self.secret_file = self.outside / "secret"
        self.secret_file.write_text(self.secret)
        self.secret_file.chmod(0o600)
        (self.outside / "open").write_text(self.secret)
        (self.outside / "open").chmod(0o644)
        self.contacts: list[str] = []
        self._closing = contextlib.ExitStack()
        self._selector = selectors.DefaultSelector()
        os.environ["GT_PLANTED"] = self.secret
        self._closing.callback(os.environ.pop, "GT_PLANTED", None)
        self._plant_descriptor()
        self._plant_victim()
        self._plant_memory()
        self.ports = self._listen_on_network()
        self.abstract = f"gametape-{secrets.token_hex(6)}"
        self._listen(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + self.abstract, "abstract")
        self._stop, stop = socket.socketpair()
        self._selector.register(stop, selectors.EVENT_READ, "stop")
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        self._before = self._host_facts()

    def close(self) -> None:
        self._stop.close()
        self._thread.join()
        self._closing.close()
        shutil.rmtree(self.top, ignore_errors=True)

    def facts(self, workspace: Path) -> dict[str, Any]:
        """What a hostile program might guess, handed to it outright."""
        return {
            **self.ports,
            "secret": self.secret,
            "outside": str(self.outside),
            "secret_file": str(self.secret_file),
            "workspace_host": str(workspace),
            "abstract": self.abstract,
            "victim": self.victim.pid,
            "launcher": os.getpid(),
            "shm_key": self.shm_key,
            "shm_id": self.shm_id,
            "posix_shm": self.posix_shm,
            "queue": self.queue,
            "planted_fd": self.planted,
            "host_name": platform.node(),
            "user": os.getuid(),
            "sources": str(Path(gametape.__file__).parent),
            "prefix": sys.prefix,
            "base_prefix": sys.base_prefix,
            "site": site.getsitepackages()[0],
            **dict.fromkeys(("granted_file", "listed", "address", "port")),
        }

    @contextlib.contextmanager
    def workspace(self) -> Iterator[Path]:
        """A new workspace, in which servers of the host listen."""
        directory = Path(tempfile.mkdtemp(prefix="workspace-", dir=self.top))
        (directory / "own").write_text("the agent's own file")
        opened: list[socket.socket] = []
        for name, kind in (("stream.sock", socket.SOCK_STREAM), ("datagram.sock", socket.SOCK_DGRAM)):
            opened.append(self._listen(socket.AF_UNIX, kind, str(directory / name), name))
        opened.append(self._listen_relative(directory, "relative.sock"))
        try:
            yield directory
        finally:
            for server in opened:
                self._selector.unregister(server)
                server.close()
            subprocess.run(["chmod", "-R", "u+rwX", directory], check=False, stderr=subprocess.DEVNULL)
            subprocess.run(["rm", "-rf", directory], check=True)

    def harm(self, nonce: str, workspace: Path) -> list[str]:
        """Every trace that an attempt left on the host. Empty: unharmed."""
        found = [f"the host was reached: {contact}" for contact in self.contacts]
        self.contacts.clear()
        if self.victim.poll() is not None:
            found.append("the victim process is dead")
        now = self._host_facts()
        found += [
            f"{name} changed: {self._before[name]} -> {now[name]}" for name in now if now[name] != self._before[name]
        ]
        for place in (
            "/",
            "/usr",
            "/usr/bin",
            "/etc",
            "/dev",
            "/dev/shm",
            "/tmp",
            "/var/tmp",
            "/run",
            str(self.outside),
        ):
            found += [f"{place}/{name} appeared" for name in os.listdir(place) if nonce in name]
        found += [f"process {pid} is still there" for pid in _processes_with(nonce)]
        found += [f"control group {path} is still there" for path in _groups_left()]
        found += [f"{path} in the workspace is {what}" for path, what in _dangerous_files(workspace)]
        return found

    def mend(self) -> None:
        """Undo what a careless host was tricked into."""
        self.secret_file.write_text(self.secret)
        for path in self.outside.iterdir():
            if path.name not in ("secret", "open"):
                path.unlink()

    def _host_facts(self) -> dict[str, Any]:
        status = self.secret_file.stat()
        return {
            "the secret file": (self.secret_file.read_text(), status.st_mode, status.st_uid, status.st_nlink),
            "the planted descriptor": os.fstat(self.planted).st_ino,
            "the victim's descriptors": sorted(os.listdir(f"/proc/{self.victim.pid}/fd")),
            "System V shared memory": ctypes.string_at(self._shm_at, 64),
            "POSIX shared memory": Path("/dev/shm", self.posix_shm).read_bytes(),
            "the message queue": self._queue_depth(),
            "mounts": [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(self.top) in line],
            "core_pattern": Path("/proc/sys/kernel/core_pattern").read_text(),
            "host name": platform.node(),
            "root directory": sorted(os.listdir("/")),
        }

    def _plant_descriptor(self) -> None:
        """An inheritable descriptor in the launcher, there before the keeper of this stage starts. The one before keeps
        the sandboxes of other tests."""
        self._closing.callback(setattr, keeper_client, "_client", keeper_client._client)
        keeper_client._client = None
        self._closing.callback(keeper_client.close_keeper)
        first = os.open(self.secret_file, os.O_RDWR)
        self.planted = fcntl.fcntl(first, fcntl.F_DUPFD, 77)
        os.set_inheritable(self.planted, True)
        os.close(first)
        self._closing.callback(os.close, self.planted)

    def _plant_victim(self) -> None:
        code = "import sys, time; held = open(sys.argv[1]); print('up', flush=True); time.sleep(7200)"
        self.victim = subprocess.Popen(
            [sys.executable, "-c", code, str(self.secret_file), self.secret],
            stdout=subprocess.PIPE,
            env={"GT_PLANTED": self.secret, "PATH": "/usr/bin"},
        )
        assert self.victim.stdout is not None
        self.victim.stdout.readline()
        self._closing.callback(self.victim.wait)
        self._closing.callback(self.victim.kill)

    def _plant_memory(self) -> None:
        self.shm_key = 0x6A000000 | secrets.randbelow(1 << 24)
        self.shm_id = _libc.shmget(self.shm_key, 4096, 0o1666)
        assert self.shm_id >= 0, "the host has no System V shared memory"
        self._closing.callback(_libc.shmctl, self.shm_id, 0, None)
        self._shm_at = _libc.shmat(self.shm_id, None, 0)
        ctypes.memmove(self._shm_at, self.secret.encode(), len(self.secret))
        self.posix_shm = f"gametape-{secrets.token_hex(6)}"
        path = Path("/dev/shm", self.posix_shm)
        path.write_text(self.secret)
        path.chmod(0o666)
        self._closing.callback(path.unlink)
        self.queue = f"/gametape-{secrets.token_hex(6)}"
        self._queue = _libc.mq_open(self.queue.encode(), os.O_RDWR | os.O_CREAT, 0o666, None)
        assert self._queue >= 0, "the host has no message queues"
        os.fchmod(self._queue, 0o666)
        _libc.mq_send(self._queue, self.secret.encode(), len(self.secret), 1)
        self._closing.callback(_libc.mq_unlink, self.queue.encode())
        self._closing.callback(os.close, self._queue)

    def _queue_depth(self) -> int:
        attributes = (ctypes.c_long * 8)()
        _libc.mq_getattr(self._queue, attributes)
        return attributes[3]

    def _listen_on_network(self) -> dict[str, int]:
        ports = {}
        for name, family, kind, address in (
            ("tcp", socket.AF_INET, socket.SOCK_STREAM, "127.0.0.1"),
            ("tcp_any", socket.AF_INET, socket.SOCK_STREAM, "0.0.0.0"),
            ("tcp6", socket.AF_INET6, socket.SOCK_STREAM, "::1"),
            ("udp", socket.AF_INET, socket.SOCK_DGRAM, "127.0.0.1"),
        ):
            ports[name] = self._listen(family, kind, (address, 0), name).getsockname()[1]
        return ports

    def _listen(self, family: int, kind: int, address: Any, name: str) -> socket.socket:
        server = socket.socket(family, kind)
        server.bind(address)
        if family == socket.AF_UNIX and not address.startswith("\0"):
            os.chmod(address, 0o777)
        if kind == socket.SOCK_STREAM:
            server.listen(8)
        server.setblocking(False)
        self._selector.register(server, selectors.EVENT_READ, name)
        return server

    def _listen_relative(self, directory: Path, name: str) -> socket.socket:
        """Bound by a name without its directory, as servers that change into theirs do."""
        back = os.open(".", os.O_RDONLY)
        os.chdir(directory)
        try:
            return self._listen(socket.AF_UNIX, socket.SOCK_STREAM, name, name)
        finally:
            os.fchdir(back)
            os.close(back)

    def _serve(self) -> None:
        while True:
            for key, _events in self._selector.select(timeout=0.5):
                if key.data == "stop":
                    return
                with contextlib.suppress(OSError):
                    server = key.fileobj
                    assert isinstance(server, socket.socket)
                    if server.type == socket.SOCK_STREAM:
                        server.accept()[0].close()
                    else:
                        server.recv(1 << 16)
                    self.contacts.append(key.data)


def _processes_with(nonce: str) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError):
                if nonce.encode() in Path("/proc", name, "cmdline").read_bytes():
                    found.append(int(name))
    return found


def _groups_left(patience: float = 60.0) -> list[str]:
    """Control groups that the keeper of this stage does not remove; one, still unused, may wait for a command."""
    names = f"{cgroups.PREFIX}{keeper_client.keeper().pid}-"
    layout = cgroups.find_layout()
    parents = set(layout.parents.values()) if layout else set()
    deadline = time.monotonic() + patience
    while True:
        left = {name for parent in parents for name in os.listdir(parent) if name.startswith(names)}
        if len(left) <= 1:
            return []
        if time.monotonic() > deadline:
            return sorted(left)
        time.sleep(0.005)


def _dangerous_files(workspace: Path) -> Iterator[tuple[Path, str]]:
    for directory, names, files in os.walk(workspace):
        for name in (*names, *files):
            path = Path(directory, name)
            with contextlib.suppress(OSError):
                mode = path.lstat().st_mode
                if stat.S_ISREG(mode) and mode & 0o6000:
                    yield path, "set-id"
                if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                    yield path, "a device"
