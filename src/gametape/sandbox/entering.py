"""The keeper's way into a sandbox that is already up: one more process inside, under the same wall.

The child joins the control group, enters every namespace of the sandbox, becomes its user, gives up all capabilities,
takes on a filter of its own, and only then executes the program. Two processes: a process namespace is entered by
forking, and the outer one stays to say how the inner one ended.

Standard library only.
"""

import base64
import fcntl
import json
import os
import signal
import socket
from typing import Any

from gametape.sandbox import kernel
from gametape.sandbox.cgroups import Group

_NAMESPACES = ("pid", "net", "ipc", "uts", "cgroup", "mnt")
_USER = 1000
_PAST_STDIO = 16


def become_entered(order: dict[str, Any], channel: socket.socket, stdio: list[int], keeper: int) -> None:
    """In a forked child of the keeper: never returns."""
    try:
        if order["group"]:
            Group(**order["group"]).join(os.getpid())
        as_root = os.geteuid() == 0
        if as_root:
            os.setgroups([])
        places = {name: f"/proc/{order['enter']}/ns/{name}" for name in (*_NAMESPACES, "user")}
        doors = {name: os.open(place, os.O_RDONLY | os.O_CLOEXEC) for name, place in places.items()}
        kernel.close_all_but([channel.fileno(), *stdio, *doors.values()])
        # Root may enter all others first and gives itself away last. An ordinary user is nobody until it is inside the
        # user namespace that owns the others; the command's own may be nested in that one.
        owner = kernel.owner_of(doors["mnt"])
        if not as_root:
            kernel.enter(owner)
        for name in _NAMESPACES:
            kernel.enter(doors[name])
        if as_root or not os.path.samestat(os.fstat(owner), os.fstat(doors["user"])):
            kernel.enter(doors["user"])
        kernel.hide()  # what is inside could otherwise take hold of us before the filter is on
        kernel.die_with_parent(keeper)
        channel.send(json.dumps({"outer": os.getpid()}).encode())
        inner = os.fork()
        if inner:
            _wait_as(inner)
        _execute(order, channel, stdio, as_root)
    except BaseException as error:
        channel.send(json.dumps({"error": str(error)}).encode())
    finally:
        os._exit(126)


def _wait_as(inner: int) -> None:
    """End as the inner process ends."""
    _, status = os.waitpid(inner, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0 and -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code)


def _execute(order: dict[str, Any], channel: socket.socket, stdio: list[int], as_root: bool) -> None:
    """Give up everything. The user comes last: from then on what is inside may send signals."""
    _go_to(order["directory"], "/workspace", "/")
    os.setsid()
    for target, copy in enumerate([fcntl.fcntl(fd, fcntl.F_DUPFD, _PAST_STDIO) for fd in stdio]):
        os.dup2(copy, target)
    kernel.keep_only(list(range(3, len(stdio))))
    kernel.no_new_privileges()
    listener = [kernel.install_filter(base64.b64decode(order["filter"]))]
    for name, value in order["rlimits"].items():  # now that no more descriptors are needed
        kernel.limit(name, value)
    socket.send_fds(channel, [b'{"ready": true}'], listener)
    kernel.usual_signals()
    if as_root:
        os.setresgid(_USER, _USER, _USER)
        os.setresuid(_USER, _USER, _USER)
    kernel.drop_capabilities()
    kernel.die_with_outer()
    os.execve(order["command"][0], [os.fsencode(word) for word in order["command"]], order["environment"])


def _go_to(*directories: str) -> None:
    """To the first of them that is still there."""
    for directory in directories:
        try:
            os.chdir(directory)
        except OSError:
            continue
        return
