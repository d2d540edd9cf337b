"""Which parts of the host are shown inside, and how an unprivileged user gets to see them."""

import os
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from gametape.sandbox.keeper import STAGE
from gametape.sandbox.policy import WORKSPACE, Policy

_SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime", "/etc/ssl/certs")
_TOP_LEVEL = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


@dataclass(frozen=True)
class Mount:
    """A host path shown inside."""

    source: str
    target: str
    writable: bool = False


def granted(policy: Policy, workspace: str | None) -> list[Mount]:
    """Everything of the host that a policy shows, parents before children."""
    shown = [Mount("/usr", "/usr"), *(Mount(path, path) for path in _SYSTEM_FILES if os.path.exists(path))]
    shown += [Mount(f"/{name}", f"/{name}") for name in _TOP_LEVEL if os.path.isdir(f"/{name}") and not _is_link(name)]
    if policy.python:
        shown += [Mount(path, path) for path in interpreter_directories() if not path.startswith("/usr/")]
    shown += [Mount(os.path.realpath(path), path) for path in policy.read_only]
    shown += [Mount(os.path.realpath(path), path, writable=True) for path in policy.writable]
    if workspace is not None:
        shown.append(Mount(workspace, WORKSPACE, writable=True))
    by_target = {mount.target: mount for mount in shown}
    return sorted(by_target.values(), key=lambda mount: mount.target.split("/"))


def links() -> list[tuple[str, str]]:
    """Top-level names that are links into /usr on this host."""
    return [(os.readlink(f"/{name}"), f"/{name}") for name in _TOP_LEVEL if _is_link(name)]


def interpreter_directories() -> list[str]:
    """The running interpreter and the environment it belongs to."""
    return list(dict.fromkeys((sys.base_prefix, sys.prefix)))


def search_path(policy: Policy) -> str:
    own = [f"{sys.prefix}/bin"] if policy.python else []
    return ":".join((*own, "/usr/local/bin", "/usr/bin", "/bin"))


def must_be_staged(mount: Mount) -> bool:
    """Whether a user that owns nothing needs help to see it: a writable tree, or one behind closed doors."""
    return mount.writable or mount.source.startswith(STAGE + "/") or not _open_to_all(mount.source)


def host_sockets(mounts: Iterable[Mount]) -> list[str]:
    """Where, inside, servers of the host are listening. A socket in a shared directory reaches through the wall."""
    with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
        names = {line.split(" ", 7)[-1].rstrip("\n") for line in file.readlines()[1:]}
    found = []
    for mount in mounts:
        prefix = mount.source.rstrip("/") + "/"
        found += [mount.target + "/" + name.removeprefix(prefix) for name in names if _socket_below(name, prefix)]
    return sorted(found)


def _socket_below(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and os.path.exists(name) and stat.S_ISSOCK(os.lstat(name).st_mode)


def _is_link(name: str) -> bool:
    return os.path.islink(f"/{name}")


def _open_to_all(path: str) -> bool:
    mode = os.stat(path).st_mode
    readable = mode & 0o004 and (mode & 0o001 or not stat.S_ISDIR(mode))
    parts = path.split("/")[1:-1]
    parents = ["/" + "/".join(parts[: index + 1]) for index in range(len(parts))]
    return bool(readable) and all(os.stat(parent).st_mode & 0o001 for parent in parents)
