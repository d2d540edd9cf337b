"""The keeper: a tiny trusted process between the host program and its sandboxes.

It starts every sandbox and outlives a host that dies: when the host is gone, for whatever reason, it ends all
sandboxes, removes their control groups and leaves. Being small, it forks in a fraction of the time that a host with
a model in memory would need; and it keeps one blank child ready, forked and in its control group, so that a launch
does not wait for either.

A launch request is one message with descriptors: the plan (a memory file that the child will read), the channel, and
the command's stdin, stdout, stderr and, optionally, its audit pipe. On the channel the child answers `ready` with a
pidfd and the seccomp listener, or an error; the keeper adds `ended` with the wait status and the group's counters.

Standard library only, started with `python -I -S`: it must be quick, and nothing in it may load foreign code.
"""

import base64
import contextlib
import dataclasses
import fcntl
import itertools
import json
import os
import select
import signal
import socket
import stat
import sys
from dataclasses import dataclass, field
from typing import Any

from gametape.sandbox import kernel
from gametape.sandbox.cgroups import Counters, Group, Layout
from gametape.sandbox.entering import become_entered
from gametape.sandbox.snapshots import overlay

STAGE = "/mnt"
"""Where a root keeper shows the sandbox what its unprivileged user could not reach, in a mount namespace of its own."""

_FIRST_UID = 1_900_000_000
_PAST_STDIO = 16  # stdin, stdout, stderr and the audit pipe take the numbers 0 to 3
_IDLE_MS = 2


@dataclass(frozen=True)
class Kind:
    """What must be known of a sandbox before its plan: whether it leaves root behind, and where its group goes."""

    drop: bool
    layout: Layout | None


@dataclass
class Child:
    """A forked process: blank until it is sent a request, then a sandbox's outer process."""

    pid: int
    pidfd: int
    slot: int
    uid: int | None = None
    group: Group | None = None
    orders: socket.socket | None = None
    channel: socket.socket | None = None

    def send(self, descriptors: list[int], of_the_request: int) -> None:
        """Give a blank child its orders."""
        assert self.orders is not None
        with self.orders:
            socket.send_fds(self.orders, [str(of_the_request).encode()], descriptors)


@dataclass
class Keeper:
    control: socket.socket
    running: dict[int, Child] = field(default_factory=dict)  # by pidfd
    blank: tuple[Kind, Child] | None = None
    latest: Kind | None = None
    owner_maps: dict[tuple[int, int, int], int] = field(default_factory=dict)
    names: "itertools.count[int]" = field(default_factory=itertools.count)

    def serve(self) -> None:
        """Launch and reap until the host is gone; then end everything."""
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
                signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)
            for child in self.running.values():
                self._reap(child)
            self._discard_blank()

    def _accept(self) -> Child | None:
        message, descriptors = kernel.receive_descriptors(self.control, 16)
        if not message:
            raise EOFError
        channel = socket.socket(fileno=descriptors[1])
        try:
            request = json.loads(message)
            return (self._enter if "enter" in request else self._launch)(request, descriptors, channel)
        except (OSError, ValueError, KeyError) as error:
            _say(channel, {"error": str(error)})
            channel.close()
            return None
        finally:
            for descriptor in (descriptors[0], *descriptors[2:]):
                os.close(descriptor)

    def _launch(self, request: dict[str, Any], descriptors: list[int], channel: socket.socket) -> Child:
        layout = Layout(**request["layout"]) if request["layout"] else None
        child = self._take(Kind(request["drop"], layout))
        try:
            if child.group:
                child.group.limit(request["memory_bytes"], request["processes"])
            maps = [self._owner_map(source, child.uid) for source in request["sources"]] if child.uid else []
            child.send([*descriptors, *maps], len(descriptors))
        except BaseException:
            self._discard(child)
            raise
        child.channel = channel
        return child

    def _enter(self, request: dict[str, Any], descriptors: list[int], channel: socket.socket) -> Child:
        """One more process in a sandbox that is up."""
        keeper = os.getpid()
        pid = os.fork()
        if pid == 0:
            with os.fdopen(os.dup(descriptors[0]), "rb") as file:
                become_entered({**request, **json.load(file)}, channel, descriptors[2:], keeper)
        return Child(pid, os.pidfd_open(pid), slot=-1, channel=channel)

    def _take(self, kind: Kind) -> Child:
        """The blank child if it is of the right kind, else a new one."""
        self.latest = kind
        if self.blank and self.blank[0] != kind:
            self._discard_blank()
        child = self.blank[1] if self.blank else self._fork(kind)
        self.blank = None
        return child

    def _fork(self, kind: Kind) -> Child:
        used = {child.slot for child in self.running.values()}
        slot = next(number for number in itertools.count() if number not in used)
        uid = _FIRST_UID + (os.getpid() % 100_000) * 1000 + slot % 1000 if kind.drop else None
        group = None
        if kind.layout:
            group = Group(kind.layout.version, kind.layout.directories(f"{os.getpid()}-{next(self.names)}"))
            group.create()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        keeper = os.getpid()
        pid = os.fork()
        if pid == 0:
            ours.close()
            _become_sandbox(theirs, keeper, uid, group)
        theirs.close()
        return Child(pid, os.pidfd_open(pid), slot, uid, group, ours)

    def _owner_map(self, source: str, uid: int) -> int:
        """A user namespace that maps the owner of `source` to the sandbox's user; kept for the next launch."""
        status = os.stat(source)
        key = (status.st_uid, status.st_gid, uid)
        if key not in self.owner_maps:
            self.owner_maps[key] = _make_owner_map(*key)
        return self.owner_maps[key]

    def _reap(self, child: Child) -> None:
        """The outer process has ended: end what it left, count, clean up, tell the host."""
        _, status = os.waitpid(child.pid, 0)
        os.close(child.pidfd)
        self._end_orphans()
        counters = Counters()
        if child.group:
            for pid in child.group.members():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            counters = child.group.counters()
        if child.channel:
            _say(child.channel, {"ended": status, "counters": dataclasses.asdict(counters)})
            child.channel.close()
        if child.group:
            with contextlib.suppress(OSError):  # a group that will not go is swept by a later keeper
                child.group.remove()

    def _discard(self, child: Child) -> None:
        signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)
        self._reap(child)

    def _discard_blank(self) -> None:
        if self.blank:
            child = self.blank[1]
            self.blank = None
            self._discard(child)

    def _end_orphans(self) -> None:
        """A child that is neither blank nor a sandbox's outer process lost its own: its namespace must end now."""
        known = {child.pid for child in self.running.values()} | ({self.blank[1].pid} if self.blank else set())
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            orphans = [pid for pid in map(int, file.read().split()) if pid not in known]
        for pid in orphans:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in orphans:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _become_sandbox(orders: socket.socket, keeper: int, uid: int | None, group: Group | None) -> None:
    """In the forked child: wait for orders, give up everything step by step, and turn into the builder."""
    channel = None
    try:
        if group:
            group.join(os.getpid())
        message, descriptors = kernel.receive_descriptors(orders, 64)
        if not message:
            os._exit(0)
        given, maps = descriptors[: int(message)], descriptors[int(message) :]
        channel, stdio = socket.socket(fileno=given[1]), given[2:]
        with os.fdopen(given[0], "rb") as file:
            plan = json.load(file)
        if plan["stage"]:
            if uid is None:
                _enter_own_user_namespace(kernel.CLONE_NEWNS)
            else:
                kernel.unshare(kernel.CLONE_NEWNS)
            kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
            _stage(plan["stage"], maps, uid or 0)
        _change_user(uid, plan["inner_users"])
        kernel.die_with_parent(keeper)
        for target, copy in enumerate([fcntl.fcntl(fd, fcntl.F_DUPFD, _PAST_STDIO) for fd in stdio]):
            os.dup2(copy, target)
        command, files = _command(plan["command"])
        kernel.keep_only([*range(3, len(stdio)), *files])
        kernel.no_new_privileges()
        ready = [os.pidfd_open(os.getpid())]
        if plan["filter"]:
            ready.append(kernel.install_filter(base64.b64decode(plan["filter"])))
        for name, value in plan["rlimits"].items():  # now that no more descriptors are needed
            kernel.limit(name, value)
        answer = {"ready": os.getpid(), "group": group and dataclasses.asdict(group)}
        socket.send_fds(channel, [json.dumps(answer).encode()], ready)
        kernel.usual_signals()
        os.execve(command[0], [os.fsencode(word) for word in command], plan["environment"])
    except BaseException as error:
        if channel:
            _say(channel, {"error": str(error)})
    finally:
        os._exit(126)


def _change_user(uid: int | None, inner_users: int | None) -> None:
    """Leave root behind; then, where the plan says so, become root of a user namespace with room for a few more."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if inner_users is not None:
        if uid is not None:
            kernel.own_again()
            _enter_own_user_namespace()
        _write("/proc/sys/user/max_user_namespaces", str(inner_users))


def _enter_own_user_namespace(beside: int = 0) -> None:
    """An ordinary user may mount things too, as the root of a user namespace that holds nobody else."""
    uid, gid = os.getuid(), os.getgid()
    kernel.unshare(kernel.CLONE_NEWUSER | beside)
    for name, content in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        _write(f"/proc/self/{name}", content)


def _write(path: str, content: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(content)


def _stage(entries: list[dict[str, Any]], maps: list[int], uid: int) -> None:
    """In the mount namespace that is ours alone, lay out each entry at STAGE/N, owned by the sandbox's user."""
    owner_maps = iter(maps)
    trees: list[int | None] = []
    for entry in entries:
        tree = kernel.clone_mount(entry["source"]) if entry["source"] else None
        if tree is not None and maps:
            kernel.map_owner(tree, next(owner_maps))
        trees.append(tree)
    kernel.mount("tmpfs", STAGE, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")
    for index, (entry, tree) in enumerate(zip(entries, trees, strict=True)):
        target = f"{STAGE}/{index}"
        if entry["covered"]:
            kernel.mount("tmpfs", entry["covered"], "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=4k")
            continue
        if tree is None:
            _lay_out(target, entry["files"], uid)
            continue
        if entry["view"]:
            _show_view(entry["view"], tree, target, uid if maps else None)
            continue
        if stat.S_ISDIR(os.fstat(tree).st_mode):
            os.mkdir(target, 0o755)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
        kernel.attach_mount(tree, target)
        os.close(tree)


def _show_view(view: dict[str, Any], store: int, target: str, owner: int | None) -> None:
    """Mount a view of a snapshot, out of a store whose files appear as the sandbox's user's."""
    place = f"{target}.store"
    os.mkdir(place, 0o755)
    os.mkdir(target, 0o755)
    kernel.attach_mount(store, place)
    os.close(store)
    overlay.mount(overlay.MountPlan(**view), target, root=place, owner=owner)
    overlay.unmount(place)


def _lay_out(directory: str, files: dict[str, str], uid: int) -> None:
    os.mkdir(directory, 0o755)
    os.chown(directory, uid, uid)
    for name, content in files.items():
        path = f"{directory}/{name.rstrip('@')}"
        if name.endswith("/"):
            os.mkdir(path, 0o755)
        elif name.endswith("@"):
            os.symlink(content, path)
        else:
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(content.replace("@UID@", str(uid)))
        os.chown(path, uid, uid, follow_symlinks=False)


def _make_owner_map(owner_uid: int, owner_gid: int, uid: int) -> int:
    ready, done = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            kernel.unshare(kernel.CLONE_NEWUSER)
            os.write(ready[1], b"1")
            os.close(done[1])
            os.read(done[0], 1)
        finally:
            os._exit(0)
    os.close(ready[1])
    try:
        if os.read(ready[0], 1) != b"1":
            raise OSError("no user namespace could be made to map the owner of the workspace")
        for name, owner in (("uid_map", owner_uid), ("gid_map", owner_gid)):
            with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as file:
                file.write(f"{owner} {uid} 1")
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for descriptor in (ready[0], *done):
            os.close(descriptor)
        os.waitpid(pid, 0)


def _command(words: list[Any]) -> tuple[list[str], list[int]]:
    """A command line, and the files in memory that it mentions by number; its program reads and closes them."""
    files: list[int] = []

    def word(item: Any) -> str:
        if isinstance(item, str):
            return item
        content = item["text"] if "text" in item else "".join(f"{word(inner)}\0" for inner in item["list"])
        descriptor = os.memfd_create("gametape")
        os.write(descriptor, os.fsencode(content))
        os.lseek(descriptor, 0, os.SEEK_SET)
        files.append(descriptor)
        return str(descriptor)

    return [word(item) for item in words], files


def _say(channel: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the host may be gone
        channel.send(json.dumps(message).encode())


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the host's; its end is our end
    kernel.adopt_orphans()
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    Keeper(control).serve()
