"""The keeper: a tiny trusted process between the host program and its sandboxes.

It starts every sandbox and outlives a host that dies: when the host's end of the control socket closes, for
whatever reason, it ends all sandboxes, removes their control groups and leaves. Being small, it also forks in a
fraction of the time that a host with a model in memory would need.

A launch request is one message with descriptors: the plan (a memory file), the channel, and the command's
stdin, stdout, stderr and, optionally, its audit pipe. On the channel the child answers `ready` with the seccomp
listener and a pidfd, or an error; the keeper adds `ended` with the wait status and the group's counters.

Standard library only, started with `python -I -S`: it must be quick, and nothing in it may load foreign code.
"""

import base64
import contextlib
import dataclasses
import fcntl
import json
import os
import resource
import select
import signal
import socket
import sys
from dataclasses import dataclass, field
from typing import Any

from gametape.sandbox import kernel
from gametape.sandbox.cgroups import Counters, Group

STAGE = "/mnt"
"""Where a root keeper shows the sandbox what its unprivileged user could not reach, in a mount namespace of its own."""

_FIRST_UID = 1_900_000_000
_PAST_STDIO = 16  # stdin, stdout, stderr and the audit pipe take the numbers 0 to 3


@dataclass
class Launched:
    """One sandbox that is up."""

    pid: int
    pidfd: int
    channel: socket.socket
    group: Group | None
    slot: int


@dataclass
class Keeper:
    control: socket.socket
    running: dict[int, Launched] = field(default_factory=dict)  # by pidfd
    owner_maps: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def serve(self) -> None:
        """Launch and reap until the host is gone; then end everything."""
        waiting = select.poll()
        waiting.register(self.control, select.POLLIN)
        host = os.pidfd_open(os.getppid())  # a forked worker of the host may hold its end of the socket open
        waiting.register(host, select.POLLIN)
        try:
            while True:
                for descriptor, _event in waiting.poll():
                    if descriptor == host:
                        raise EOFError
                    if descriptor in self.running:
                        waiting.unregister(descriptor)
                        self._reap(self.running.pop(descriptor))
                    elif launched := self._accept():
                        self.running[launched.pidfd] = launched
                        waiting.register(launched.pidfd, select.POLLIN)
        except EOFError:
            for launched in self.running.values():
                signal.pidfd_send_signal(launched.pidfd, signal.SIGKILL)
            for launched in self.running.values():
                self._reap(launched)

    def _accept(self) -> Launched | None:
        message, descriptors = kernel.receive_descriptors(self.control, 8)
        if not message:
            raise EOFError
        plan_file, channel_file, *stdio = descriptors
        channel = socket.socket(fileno=channel_file)
        try:
            with os.fdopen(plan_file, "rb") as file:
                plan = json.load(file)
            return self._launch(plan, channel, stdio)
        except (OSError, ValueError, KeyError) as error:
            _say(channel, {"error": str(error)})
            channel.close()
            return None
        finally:
            for descriptor in stdio:
                os.close(descriptor)

    def _launch(self, plan: dict[str, Any], channel: socket.socket, stdio: list[int]) -> Launched:
        slot = next(n for n in range(len(self.running) + 1) if n not in {r.slot for r in self.running.values()})
        uid = _FIRST_UID + (os.getpid() % 100_000) * 1000 + slot % 1000 if plan["drop"] else None
        group = None
        if plan["group"]:
            group = Group(plan["group"]["version"], plan["group"]["directories"])
            group.create(plan["memory_bytes"], plan["processes"])
        try:
            maps = {source: self._owner_map(source, uid) for source in plan["stage"]} if uid else {}
            keeper = os.getpid()
            pid = os.fork()
            if pid == 0:
                _become_sandbox(plan, channel, stdio, keeper, uid, group, maps)
        except BaseException:
            if group:
                group.remove()
            raise
        return Launched(pid, os.pidfd_open(pid), channel, group, slot)

    def _owner_map(self, source: str, uid: int) -> int:
        """A user namespace that maps the owner of `source` to the sandbox's user; kept for the next launch."""
        status = os.stat(source)
        key = (status.st_uid, status.st_gid, uid)
        if key not in self.owner_maps:
            self.owner_maps[key] = _make_owner_map(*key)
        return self.owner_maps[key]

    def _reap(self, launched: Launched) -> None:
        """The outer process has ended: end what it left, count, clean up, tell the host."""
        _, status = os.waitpid(launched.pid, 0)
        os.close(launched.pidfd)
        self._end_orphans()
        counters = Counters()
        if launched.group:
            for pid in launched.group.members():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            counters = launched.group.counters()
            launched.group.remove()
        _say(launched.channel, {"ended": status, "counters": dataclasses.asdict(counters)})
        launched.channel.close()

    def _end_orphans(self) -> None:
        """A child that is not a running sandbox's outer process lost its own: its name space must end now."""
        known = {launched.pid for launched in self.running.values()}
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            orphans = [pid for pid in map(int, file.read().split()) if pid not in known]
        for pid in orphans:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in orphans:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _become_sandbox(
    plan: dict[str, Any],
    channel: socket.socket,
    stdio: list[int],
    keeper: int,
    uid: int | None,
    group: Group | None,
    maps: dict[str, int],
) -> None:
    """In the forked child: give up everything, step by step, and turn into bubblewrap. Never returns."""
    try:
        if group:
            group.join(os.getpid())
        if plan["stage"]:
            _stage(plan["stage"], maps)
        if uid is not None:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        kernel.die_with_parent(keeper)
        _limit(plan["rlimits"])
        copies = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _PAST_STDIO) for descriptor in stdio]
        for target, copy in enumerate(copies):
            os.dup2(copy, target)
        command, files = _command(plan)
        kernel.keep_only([*range(3, len(stdio)), *files])
        kernel.no_new_privileges()
        ready = [os.pidfd_open(os.getpid())]
        if plan["filter"]:
            ready.append(kernel.install_filter(base64.b64decode(plan["filter"])))
        socket.send_fds(channel, [json.dumps({"ready": os.getpid()}).encode()], ready)
        os.execve(plan["program"], [os.fsencode(word) for word in command], plan["environment"])
    except BaseException as error:
        _say(channel, {"error": str(error)})
    finally:
        os._exit(126)


def _stage(sources: list[str], maps: dict[str, int]) -> None:
    """In a mount namespace of our own, show each source at STAGE/N, owned by the sandbox's user."""
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    trees = []
    for source in sources:
        tree = kernel.clone_mount(source)
        if source in maps:
            kernel.map_owner(tree, maps[source])
        trees.append((tree, os.path.isdir(source)))
    kernel.mount("tmpfs", STAGE, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755")
    for index, (tree, is_directory) in enumerate(trees):
        target = f"{STAGE}/{index}"
        if is_directory:
            os.mkdir(target, 0o755)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
        kernel.attach_mount(tree, target)
        os.close(tree)


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


def _limit(limits: dict[str, int]) -> None:
    for name, wanted in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        _soft, hard = resource.getrlimit(kind)
        ceiling = wanted + 1 if name == "CPU" else wanted  # SIGXCPU says why; SIGKILL a second later does not
        if hard != resource.RLIM_INFINITY:
            ceiling = min(ceiling, hard)
        resource.setrlimit(kind, (min(wanted, ceiling), ceiling))


def _command(plan: dict[str, Any]) -> tuple[list[str], list[int]]:
    """bubblewrap's command line, and the memory files that it mentions by number, reads and closes."""
    files: list[int] = []

    def memory_file(content: str) -> str:
        descriptor = os.memfd_create("gametape")
        os.write(descriptor, os.fsencode(content))
        os.lseek(descriptor, 0, os.SEEK_SET)
        files.append(descriptor)
        return str(descriptor)

    options = [word if isinstance(word, str) else memory_file(word["content"]) for word in plan["arguments"]]
    if plan["hide_options"]:
        options = ["--args", memory_file("".join(f"{word}\0" for word in options))]
    return [plan["program"], *options, "--", *plan["argv"]], files


def _say(channel: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the host may be gone
        channel.send(json.dumps(message).encode())


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the host's; its end is our end
    kernel.adopt_orphans()
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    Keeper(control).serve()
