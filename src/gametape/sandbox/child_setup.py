"""What a forked child of the keeper does: it drops its privileges step by step and becomes a sandbox's builder, or one
more process in a sandbox that runs.

Standard library only.
"""

import base64
import contextlib
import dataclasses
import fcntl
import json
import os
import signal
import socket
import stat
from typing import Any

from gametape.sandbox import linux
from gametape.sandbox.cgroups import ControlGroup
from gametape.sandbox.snapshots import overlay

STAGING_DIRECTORY = "/mnt"
"""Where a root keeper shows the sandbox what its unprivileged user could not reach, in a mount namespace of its own."""

_PAST_STDIO = 16  # stdin, stdout, stderr and the audit pipe take the numbers 0 to 3


def become_sandbox(request_socket: socket.socket, keeper: int, uid: int | None, group: ControlGroup | None) -> None:
    """In the forked child: wait for the request, drop privileges step by step, and execute the builder."""
    channel = None
    try:
        if group:
            group.join(os.getpid())
        message, descriptors = linux.receive_descriptors(request_socket, 64)
        if not message:
            os._exit(0)
        given, maps = descriptors[: int(message)], descriptors[int(message) :]
        channel, stdio = socket.socket(fileno=given[1]), given[2:]
        with os.fdopen(given[0], "rb") as file:
            plan = json.load(file)
        if plan["stage"]:
            if uid is None and (os.geteuid() != 0 or plan["inner_users"] is not None):
                linux.enter_user_namespace(0, 0, linux.CLONE_NEWNS)  # where an ordinary user may mount
            else:
                linux.unshare(linux.CLONE_NEWNS)
            linux.mount("", "/", "", linux.MS_REC | linux.MS_PRIVATE)
            _stage(plan["stage"], maps, uid or 0)
        _change_user(uid, plan["inner_users"])
        linux.die_with_parent(keeper)
        for target, copy in enumerate([fcntl.fcntl(fd, fcntl.F_DUPFD, _PAST_STDIO) for fd in stdio]):
            os.dup2(copy, target)
        command, files = _command(plan["command"])
        linux.inherit_only([*range(3, len(stdio)), *files])
        linux.no_new_privileges()
        ready = [os.pidfd_open(os.getpid())]
        if plan["filter"]:
            ready.append(linux.install_filter(base64.b64decode(plan["filter"])))
        for name, value in plan["rlimits"].items():  # now that no more descriptors are needed
            linux.set_rlimit(name, value)
        answer = {"ready": os.getpid(), "group": group and dataclasses.asdict(group)}
        socket.send_fds(channel, [json.dumps(answer).encode()], ready)
        linux.reset_signals()
        os.execve(command[0], [os.fsencode(word) for word in command], plan["environment"])
    except BaseException as error:
        if channel:
            send_message(channel, {"error": str(error)})
    finally:
        os._exit(126)


def _change_user(uid: int | None, inner_users: int | None) -> None:
    """Drop root; then, where the plan says so, become root of a user namespace in which a few more can be made."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if inner_users is not None:
        if uid is not None:
            linux.make_dumpable()
            linux.enter_user_namespace(0, 0)
        _write("/proc/sys/user/max_user_namespaces", str(inner_users))


def _write(path: str, content: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(content)


def _stage(entries: list[dict[str, Any]], maps: list[int], uid: int) -> None:
    """In a private mount namespace, mount each entry at STAGING_DIRECTORY/N, owned by the sandbox's user."""
    owner_maps = iter(maps)
    trees: list[int | None] = []
    for entry in entries:
        tree = linux.clone_mount(entry["source"]) if entry["source"] else None
        if tree is not None and maps:
            linux.map_owner(tree, next(owner_maps))
        trees.append(tree)
    linux.mount("tmpfs", STAGING_DIRECTORY, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755")
    for index, (entry, tree) in enumerate(zip(entries, trees, strict=True)):
        target = f"{STAGING_DIRECTORY}/{index}"
        if entry["covered"]:
            linux.mount("tmpfs", entry["covered"], "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755,size=4k")
            continue
        if entry["scratch"]:
            _make_scratch(target, entry["scratch"], uid)
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
        linux.attach_mount(tree, target)
        os.close(tree)


def _show_view(view: dict[str, Any], store: int, target: str, owner: int | None) -> None:
    """Mount a view of a snapshot from a store whose files appear to belong to the sandbox's user."""
    store_path = f"{target}.store"
    os.mkdir(store_path, 0o755)
    os.mkdir(target, 0o755)
    linux.attach_mount(store, store_path)
    os.close(store)
    overlay.mount(overlay.MountPlan(**view), target, root=store_path, owner=owner)
    overlay.unmount(store_path)


def _make_scratch(target: str, scratch: dict[str, Any], uid: int) -> None:
    """One file system for every temporary directory, so that its size bounds them together."""
    sizes = {"size": scratch["size_bytes"], "nr_inodes": scratch["files"]}
    options = ["mode=755", *(f"{name}={value}" for name, value in sizes.items() if value is not None)]
    os.mkdir(target, 0o755)
    linux.mount("tmpfs", target, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, ",".join(options))
    for name, mode in scratch["directories"].items():
        os.mkdir(f"{target}/{name}")
        os.chown(f"{target}/{name}", uid, uid)
        os.chmod(f"{target}/{name}", mode)


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


def make_owner_map(owner_uid: int, owner_gid: int, uid: int) -> int:
    """A user namespace, as a descriptor, that maps an owner of files to the sandbox's user."""
    ready, done = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            linux.unshare(linux.CLONE_NEWUSER)
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


def send_message(channel: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the host may be gone
        channel.send(json.dumps(message).encode())


_NAMESPACES = ("pid", "net", "ipc", "uts", "cgroup", "mnt")
_INNER_USER = 1000


def become_process_inside(request: dict[str, Any], channel: socket.socket, stdio: list[int], keeper: int) -> None:
    """In a forked child of the keeper: join the sandbox's namespaces and execute a program there. Never returns.

    There are two processes: the outer one joins the process namespace, which only its children are in, and ends as the
    inner one ends.
    """
    try:
        if request["group"]:
            ControlGroup(**request["group"]).join(os.getpid())
        as_root = os.geteuid() == 0
        if as_root:
            os.setgroups([])
        paths = {name: f"/proc/{request['enter']}/ns/{name}" for name in (*_NAMESPACES, "user")}
        namespaces = {name: os.open(path, os.O_RDONLY | os.O_CLOEXEC) for name, path in paths.items()}
        linux.close_all_but([channel.fileno(), *stdio, *namespaces.values()])
        # Root can join all others first and the user namespace last. An ordinary user has no capability until it is in
        # the user namespace that owns the others; the command's own may be nested in that one.
        owner = linux.owning_user_namespace(namespaces["mnt"])
        if not as_root:
            linux.join_namespace(owner)
        for name in _NAMESPACES:
            linux.join_namespace(namespaces[name])
        if as_root or not os.path.samestat(os.fstat(owner), os.fstat(namespaces["user"])):
            linux.join_namespace(namespaces["user"])
        linux.make_undumpable()  # processes inside could otherwise trace this one before the filter is on
        linux.die_with_parent(keeper)
        channel.send(json.dumps({"outer": os.getpid()}).encode())
        inner = os.fork()
        if inner:
            _wait_as(inner)
        _execute(request, channel, stdio, as_root)
    except BaseException as error:
        channel.send(json.dumps({"error": str(error)}).encode())
    finally:
        os._exit(126)


def listen_inside(request: dict[str, Any], channel: socket.socket) -> None:
    """In a forked child of the keeper: make a listening socket in a sandbox's own network and send it to the host. The
    socket stays in that network whoever holds it, so nothing of the proxy behind it runs inside. Never returns."""
    try:
        linux.make_undumpable()
        network = os.open(f"/proc/{request['listen']}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        if os.path.samestat(os.fstat(network), os.stat("/proc/self/ns/net")):
            raise OSError("the sandbox has no network of its own")
        if os.geteuid() != 0:
            linux.join_namespace(linux.owning_user_namespace(network))
        linux.join_namespace(network)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
            listener.bind(("127.0.0.1", request["port"]))
            listener.listen(128)
            socket.send_fds(channel, [b'{"listening": true}'], [listener.fileno()])
    except BaseException as error:
        send_message(channel, {"error": str(error)})
    finally:
        os._exit(0)


def _wait_as(inner: int) -> None:
    """End as the inner process ends."""
    _, status = os.waitpid(inner, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0 and -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code)


def _execute(request: dict[str, Any], channel: socket.socket, stdio: list[int], as_root: bool) -> None:
    """Drop all privileges and execute. The user changes last: from then on processes inside may send signals."""
    _go_to(request["directory"], "/workspace", "/")
    os.setsid()
    for target, copy in enumerate([fcntl.fcntl(fd, fcntl.F_DUPFD, _PAST_STDIO) for fd in stdio]):
        os.dup2(copy, target)
    linux.inherit_only(list(range(3, len(stdio))))
    linux.no_new_privileges()
    listener = [linux.install_filter(base64.b64decode(request["filter"]))]
    for name, value in request["rlimits"].items():  # now that no more descriptors are needed
        linux.set_rlimit(name, value)
    socket.send_fds(channel, [b'{"ready": true}'], listener)
    linux.reset_signals()
    if as_root:
        os.setresgid(_INNER_USER, _INNER_USER, _INNER_USER)
        os.setresuid(_INNER_USER, _INNER_USER, _INNER_USER)
    linux.drop_capabilities()
    linux.die_with_unchecked_parent()
    os.execve(request["command"][0], [os.fsencode(word) for word in request["command"]], request["environment"])


def _go_to(*directories: str) -> None:
    """Change to the first of these directories that exists."""
    for directory in directories:
        try:
            os.chdir(directory)
        except OSError:
            continue
        return
