"""The keeper: a tiny trusted process between the host program and its sandboxes.

It starts every sandbox and outlives a host that dies: when the host is gone, for whatever reason, it kills all
sandboxes, removes their control groups and exits. Being small, it forks in a fraction of the time that a host with
a model in memory would need; and it keeps one blank child ready, forked and in its control group, so that a launch
does not wait for either.

A launch request is one message with descriptors: the plan (a memory file that the child will read), the channel, and
the command's stdin, stdout, stderr and, optionally, its audit pipe. On the channel the child answers `ready` with a
pidfd and the seccomp listener, or an error; the keeper adds `ended` with the wait status and the group's counters.

Standard library only, started with `python -I -S`: it must be quick, and nothing in it may load foreign code.
"""

import contextlib
import dataclasses
import itertools
import json
import os
import select
import signal
import socket
import sys
from dataclasses import dataclass, field
from typing import Any

from gametape.sandbox import linux
from gametape.sandbox.cgroups import CgroupLayout, ControlGroup, ResourceCounters
from gametape.sandbox.child_setup import (
    become_process_inside,
    become_sandbox,
    listen_inside,
    make_owner_map,
    send_message,
)

_FIRST_UID = 1_900_000_000
_IDLE_MS = 2


@dataclass(frozen=True)
class ChildKind:
    """What a blank child is forked for: whether it drops root, and where its control group is made."""

    drop: bool
    layout: CgroupLayout | None


@dataclass
class KeeperChild:
    """A forked process: blank until it is sent a request, then a sandbox's outer process."""

    pid: int
    pidfd: int
    slot: int
    uid: int | None = None
    group: ControlGroup | None = None
    request_socket: socket.socket | None = None
    channel: socket.socket | None = None

    def send_request(self, descriptors: list[int], request_count: int) -> None:
        """Send a blank child the launch request."""
        assert self.request_socket is not None
        with self.request_socket:
            socket.send_fds(self.request_socket, [str(request_count).encode()], descriptors)


@dataclass
class SandboxKeeper:
    """The keeper's state and its loop."""

    control: socket.socket
    running: dict[int, KeeperChild] = field(default_factory=dict)  # by pidfd
    blank: tuple[ChildKind, KeeperChild] | None = None
    latest: ChildKind | None = None
    owner_maps: dict[tuple[int, int, int], int] = field(default_factory=dict)
    names: "itertools.count[int]" = field(default_factory=itertools.count)
    ended: dict[int, int] = field(default_factory=dict)
    """Wait status by process number, of those that ended while the keeper waited for another."""

    def serve(self) -> None:
        """Launch and reap until the host is gone; then kill everything."""
        waiting = select.poll()
        waiting.register(self.control, select.POLLIN)
        host = os.pidfd_open(os.getppid())  # a forked worker of the host may hold its end of the socket open
        waiting.register(host, select.POLLIN)
        try:
            while True:
                ready = waiting.poll(_IDLE_MS if self.blank is None and self.latest else None)
                if not ready and self.latest:
                    self.blank = (self.latest, self._fork(self.latest))
                for descriptor, _event in ready:
                    if descriptor == host:
                        raise EOFError
                    if descriptor in self.running:
                        waiting.unregister(descriptor)
                        self._reap(self.running.pop(descriptor))
                    elif child := self._accept():
                        self.running[child.pidfd] = child
                        waiting.register(child.pidfd, select.POLLIN)
        except EOFError:
            for child in self.running.values():
                with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                    signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)
            for child in self.running.values():
                self._reap(child)
            self._discard_blank()

    def _accept(self) -> KeeperChild | None:
        message, descriptors = linux.receive_descriptors(self.control, 16)
        if not message:
            raise EOFError
        channel = socket.socket(fileno=descriptors[1])
        try:
            request = json.loads(message)
            if "listen" in request:
                return self._listen(request, channel)
            return (self._enter if "enter" in request else self._launch)(request, descriptors, channel)
        except (OSError, ValueError, KeyError) as error:
            send_message(channel, {"error": str(error)})
            channel.close()
            return None
        finally:
            for descriptor in (descriptors[0], *descriptors[2:]):
                os.close(descriptor)

    def _launch(self, request: dict[str, Any], descriptors: list[int], channel: socket.socket) -> KeeperChild:
        layout = CgroupLayout(**request["layout"]) if request["layout"] else None
        child = self._take(ChildKind(request["drop"], layout))
        try:
            if child.group:
                child.group.limit(request["memory_bytes"], request["processes"])
            maps = [self._owner_map(source, child.uid) for source in request["sources"]] if child.uid else []
            child.send_request([*descriptors, *maps], len(descriptors))
        except BaseException:
            self._discard(child)
            raise
        child.channel = channel
        return child

    def _enter(self, request: dict[str, Any], descriptors: list[int], channel: socket.socket) -> KeeperChild:
        """Start one more process in a running sandbox."""
        keeper = os.getpid()
        pid = os.fork()
        if pid == 0:
            with os.fdopen(os.dup(descriptors[0]), "rb") as file:
                become_process_inside({**request, **json.load(file)}, channel, descriptors[2:], keeper)
        return KeeperChild(pid, os.pidfd_open(pid), slot=-1, channel=channel)

    def _listen(self, request: dict[str, Any], channel: socket.socket) -> KeeperChild:
        """Have a listening socket made in a running sandbox's network."""
        pid = os.fork()
        if pid == 0:
            listen_inside(request, channel)
        return KeeperChild(pid, os.pidfd_open(pid), slot=-1, channel=channel)

    def _take(self, kind: ChildKind) -> KeeperChild:
        """The blank child if it is of the right kind, else a new one."""
        self.latest = kind
        if self.blank and self.blank[0] != kind:
            self._discard_blank()
        child = self.blank[1] if self.blank else self._fork(kind)
        self.blank = None
        return child

    def _fork(self, kind: ChildKind) -> KeeperChild:
        used = {child.slot for child in self.running.values()}
        slot = next(number for number in itertools.count() if number not in used)
        uid = _FIRST_UID + (os.getpid() % 100_000) * 1000 + slot % 1000 if kind.drop else None
        group = None
        if kind.layout:
            group = ControlGroup(kind.layout.version, kind.layout.directories(f"{os.getpid()}-{next(self.names)}"))
            group.create()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        keeper = os.getpid()
        pid = os.fork()
        if pid == 0:
            ours.close()
            become_sandbox(theirs, keeper, uid, group)
        theirs.close()
        return KeeperChild(pid, os.pidfd_open(pid), slot, uid, group, ours)

    def _owner_map(self, source: str, uid: int) -> int:
        """A user namespace that maps the owner of `source` to the sandbox's user; kept for the next launch."""
        status = os.stat(source)
        key = (status.st_uid, status.st_gid, uid)
        if key not in self.owner_maps:
            self.owner_maps[key] = make_owner_map(*key)
        return self.owner_maps[key]

    def _reap(self, child: KeeperChild) -> None:
        """The outer process has ended: kill what it left, read the counters, clean up, tell the host."""
        self._await({child.pid})
        status = self.ended.pop(child.pid)
        os.close(child.pidfd)
        self._end_orphans()
        counters = ResourceCounters()
        if child.group:
            for pid in child.group.members():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            counters = child.group.counters()
        if child.channel:
            send_message(child.channel, {"ended": status, "counters": dataclasses.asdict(counters)})
            child.channel.close()
        if child.group:
            with contextlib.suppress(OSError):  # a group that will not go is swept by a later keeper
                child.group.remove()

    def _discard(self, child: KeeperChild) -> None:
        signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)
        self._reap(child)

    def _discard_blank(self) -> None:
        if self.blank:
            child = self.blank[1]
            self.blank = None
            self._discard(child)

    def _end_orphans(self) -> None:
        """A child that is neither blank nor a sandbox's outer process lost its parent: its namespace must end now."""
        known = {child.pid for child in self.running.values()} | ({self.blank[1].pid} if self.blank else set())
        while orphans := _children() - known - self.ended.keys():
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._await(orphans)
            for pid in orphans:
                self.ended.pop(pid, None)

    def _await(self, pids: set[int]) -> None:
        """Wait for all of them and reap any other that ends meanwhile: one may only end when another is reaped."""
        while not pids <= self.ended.keys():
            pid, status = os.waitpid(-1, 0)
            self.ended[pid] = status


def _children() -> set[int]:
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return set(map(int, file.read().split()))


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the host's; its end is our end
    linux.become_subreaper()
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    SandboxKeeper(control).serve()
