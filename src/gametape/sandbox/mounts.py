"""Which paths of the host are mounted inside, which are hidden, and which an unprivileged user needs staged."""

import contextlib
import os
import socket
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.sandbox.child_setup import STAGING_DIRECTORY
from gametape.sandbox.policy import WORKSPACE, SandboxPolicy
from gametape.sandbox.snapshots.overlay import MountPlan
from gametape.sandbox.third_party_python import inside_third_party, third_party_directories

_SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/alternatives")
_TOP_LEVEL = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


@dataclass(frozen=True)
class Mount:
    """A host path that is mounted inside."""

    source: str
    target: str
    writable: bool = False
    view: MountPlan | None = None
    """A view of a snapshot, to be mounted at the target; `source` is then where its changes go."""


_SYSTEM = Mount("/usr", "/usr")


@dataclass(frozen=True)
class MaskedPath:
    """A path inside where an empty directory or file hides what a mount would show."""

    target: str
    directory: bool


def granted_mounts(policy: SandboxPolicy, workspace: Path | None, view: MountPlan | None = None) -> list[Mount]:
    """Everything of the host that a policy grants, parents before children, with all links resolved now."""
    granted = [_SYSTEM, *(Mount(path, path) for path in _SYSTEM_FILES if os.path.exists(path))]
    top = (f"/{name}" for name in _TOP_LEVEL)
    granted += [Mount(path, path) for path in top if os.path.isdir(path) and not os.path.islink(path)]
    if policy.python:
        interpreter = interpreter_directories()
        granted += [Mount(path, path) for path in interpreter if not path.startswith("/usr/")]
        granted += [Mount(path, path) for path in inside_third_party((*interpreter, *sys.path)) if os.path.exists(path)]
    if view is not None:
        granted.append(Mount(f"{view.root}/{view.upper}", WORKSPACE, writable=True, view=view))
    elif workspace is not None:
        if not workspace.is_dir():
            raise BadInput(f"no such workspace directory: {workspace}")
        granted.append(Mount(str(workspace.resolve()), WORKSPACE, writable=True))
    granted += [Mount(_existing(path), path, writable=True) for path in policy.writable]
    writable = [mount.source for mount in granted if mount.writable]
    for path in policy.read_only:
        if any(_below(grant, tree) for grant in (path, _existing(path)) for tree in writable):
            raise BadInput(f"the policy grants {path} inside a directory that the command may change")
        granted.append(Mount(_existing(path), path))
    if any(_below(path, other) for path in writable for other in writable if path is not other):
        raise BadInput("the policy grants one writable directory inside another")
    by_target = {mount.target: mount for mount in granted}
    return sorted(by_target.values(), key=_parts)


def masked_paths(policy: SandboxPolicy, granted: Sequence[Mount]) -> list[MaskedPath]:
    """What lies below these mounts and is to be empty inside: the policy's `hidden`, and third-party Python below /usr.

    A grant of the same path, or of one below it, is mounted over the mask.
    """
    layers: dict[str, Mount | MaskedPath] = {os.path.normpath(mount.target): mount for mount in granted}
    for path in filter(os.path.exists, policy.hidden):
        host_path = os.path.realpath(path)
        for mount in granted:
            target = _target_of(mount, host_path)
            if target and _innermost(target, layers) == mount:
                if mount.writable:
                    raise BadInput(f"the policy hides {path} inside a directory that the command may change")
                layers[target] = MaskedPath(target, os.path.isdir(host_path))
    for host_path in filter(os.path.isdir, third_party_directories()):
        if _innermost(host_path, layers) == _SYSTEM:
            layers[host_path] = MaskedPath(host_path, directory=True)
    masks = [mask for mask in layers.values() if isinstance(mask, MaskedPath)]
    return [mask for mask in masks if not isinstance(_innermost(os.path.dirname(mask.target), layers), MaskedPath)]


def _target_of(mount: Mount, host_path: str) -> str | None:
    """The path inside at which a mount shows a host path below its source."""
    source = os.path.realpath(mount.source)
    if host_path == source or not _below(host_path, source):
        return None
    return os.path.normpath(mount.target) + host_path.removeprefix(source)


def _innermost(path: str, layers: Mapping[str, Mount | MaskedPath]) -> Mount | MaskedPath | None:
    """The layer that is visible at a path inside."""
    while path not in layers and path != "/":
        path = os.path.dirname(path)
    return layers.get(path)


def in_mount_order(granted: Iterable[Mount], masks: Iterable[MaskedPath]) -> list[Mount | MaskedPath]:
    """Mounts and masks, parents before children: a later one is mounted over an earlier one."""
    layers: list[Mount | MaskedPath] = [*granted, *masks]
    return sorted(layers, key=_parts)


def _parts(layer: Mount | MaskedPath) -> list[str]:
    return layer.target.split("/")


def _existing(path: str) -> str:
    if not os.path.exists(path):
        raise BadInput(f"the policy grants {path}, which does not exist")
    return os.path.realpath(path)


def _below(path: str, tree: str) -> bool:
    return path == tree or path.startswith(tree.rstrip("/") + "/")


def usr_links() -> list[tuple[str, str]]:
    """Top-level names that are links into /usr on this host."""
    names = [*(f"/{name}" for name in _TOP_LEVEL), "/etc/localtime"]
    return [(os.readlink(name), name) for name in names if os.path.islink(name)]


def interpreter_directories() -> list[str]:
    """The running interpreter and the environment it belongs to."""
    return list(dict.fromkeys((sys.base_prefix, sys.prefix)))


def search_path(policy: SandboxPolicy) -> str:
    own = [f"{sys.prefix}/bin"] if policy.python else []
    return ":".join((*own, "/usr/local/bin", "/usr/bin", "/bin"))


def must_be_staged(mount: Mount) -> bool:
    """Whether the sandbox's user, who owns nothing, cannot reach it: a writable tree, or one in a closed directory."""
    return mount.writable or mount.source.startswith(STAGING_DIRECTORY + "/") or not _open_to_all(mount.source)


def host_sockets(mounts: Iterable[Mount], masks: Iterable[MaskedPath] = ()) -> list[str]:
    """Paths inside at which servers of the host may listen. A socket in a shared directory crosses the isolation.

    A socket's name in the kernel's list says little: it may be relative, renamed, linked, or of another network
    namespace. So the trees that commands can write to are searched; read-only ones are matched by name.
    """
    with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
        names = [line.split(" ", 7)[-1].rstrip("\n") for line in file.readlines()[1:]]
    sockets = []
    for mount in mounts:
        prefix = mount.source.rstrip("/") + "/"
        paths = _sockets_below(mount.source) if mount.writable else (name for name in names if name.startswith(prefix))
        sockets += [mount.target + path.removeprefix(mount.source) for path in paths if _is_listening(path)]
    masked = [mask.target for mask in masks]
    return sorted({path for path in sockets if not any(_below(path, target) for target in masked)})


def _is_listening(path: str) -> bool:
    """Whether a process listens on a socket, asked in a way that a stream or datagram server does not notice."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK) as caller:
            caller.connect(f"/proc/self/fd/{descriptor}")
    except ConnectionRefusedError:
        return False
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return True


def _sockets_below(top: str) -> Iterator[str]:
    todo = [top]
    while todo:
        with contextlib.suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    todo.append(entry.path)
                elif not (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
                    yield entry.path


def _open_to_all(path: str) -> bool:
    mode = os.stat(path).st_mode
    readable = mode & 0o004 and (mode & 0o001 or not stat.S_ISDIR(mode))
    parts = path.split("/")[1:-1]
    parents = ["/" + "/".join(parts[: index + 1]) for index in range(len(parts))]
    return bool(readable) and all(os.stat(parent).st_mode & 0o001 for parent in parents)
