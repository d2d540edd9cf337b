"""The handful of Linux calls that Python's standard library lacks, through ctypes.

Standard library only. Every function raises OSError naming the call that failed.
"""

import contextlib
import ctypes
import fcntl
import os
import platform
import resource
import signal
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

_libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 0x1000, 0x4000, 1 << 18

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_RT_SIGACTION = {"x86_64": 13, "aarch64": 134}
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_AT_FDCWD, _AT_EMPTY_PATH, _AT_SYMLINK_NOFOLLOW = -100, 0x1000, 0x100
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC = 1, os.O_CLOEXEC
_MOVE_MOUNT_F_EMPTY_PATH = 4
_MOUNT_ATTR_IDMAP = 0x00100000
_KCMP_FILES = 2


def _check(result: int, call: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result


def die_with_parent(parent: int) -> None:
    """Ask for SIGKILL when the parent ends. Credentials must not change afterwards: that would clear it."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl(PDEATHSIG)")
    if os.getppid() != parent:
        raise OSError("the parent is gone")


def die_with_unchecked_parent() -> None:
    """The same where the parent lives outside our process namespace and cannot be checked."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl(PDEATHSIG)")


def make_undumpable() -> None:
    """No process of the same user may look into this one, or change it, until it executes a program."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl(DUMPABLE)")


def join_namespace(namespace: int) -> None:
    _check(_libc.setns(namespace, 0), "setns")


def owning_user_namespace(namespace: int) -> int:
    """The user namespace to which another namespace belongs, as a descriptor."""
    get_owner = 0xB701
    return fcntl.ioctl(namespace, get_owner)


class _CapabilityHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


def drop_capabilities() -> None:
    """Give up every capability for good."""
    for number in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) < 0:
            break  # past the last one this kernel knows
    header, none = _CapabilityHeader(0x20080522, 0), (ctypes.c_uint32 * 6)()
    _check(_libc.capset(ctypes.byref(header), none), "capset")


def set_rlimit(name: str, wanted: int) -> None:
    """Set a resource limit by its name, as far as we may."""
    resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), clamp_rlimit(name, wanted))


def clamp_rlimit(name: str, wanted: int) -> tuple[int, int]:
    """The soft and hard limit nearest to what is wanted that this process may set."""
    _soft, hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
    ceiling = wanted + 1 if name == "CPU" else wanted  # SIGXCPU says why; SIGKILL a second later does not
    if hard != resource.RLIM_INFINITY:
        ceiling = min(ceiling, hard)
    return min(wanted, ceiling), ceiling


def become_subreaper() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl(CHILD_SUBREAPER)")


def no_new_privileges() -> None:
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(NO_NEW_PRIVS)")


def make_dumpable() -> None:
    """Give a process that changed its user its own entries of /proc back, until it executes something."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl(DUMPABLE)")


def reset_signals() -> None:
    """Undo what Python, the keeper or whoever started the host ignores or blocks: the next program would inherit it."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    for reserved in (32, 33):  # the C library's own, which it lets nobody touch, and which `make` passes on ignored
        _libc.syscall(_RT_SIGACTION[platform.machine()], reserved, bytes(32), None, 8)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def enter_user_namespace(inside_uid: int, inside_gid: int, flags: int = 0) -> None:
    """A new user namespace in which this user has every capability under another number, and there is no other user.
    `flags` name further namespaces that it owns."""
    uid, gid = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER | flags)
    maps = (("setgroups", "deny"), ("uid_map", f"{inside_uid} {uid} 1"), ("gid_map", f"{inside_gid} {gid} 1"))
    for name, content in maps:
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(content)


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    arguments = [text.encode() if text else None for text in (source, target, kind)]
    _check(_libc.mount(*arguments, ctypes.c_ulong(flags), data.encode() if data else None), f"mount {target}")


def clone_mount(path: str) -> int:
    """A detached copy of the mount that shows `path`, as a descriptor."""
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_SYMLINK_NOFOLLOW
    return _check(_libc.syscall(_OPEN_TREE, _AT_FDCWD, path.encode(), ctypes.c_uint(flags)), f"open_tree {path}")


class _MountAttr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns_fd")]


def map_owner(tree: int, user_namespace: int) -> None:
    """Show the files of a detached mount under other owners (an ID-mapped mount)."""
    attributes = _MountAttr(_MOUNT_ATTR_IDMAP, 0, 0, user_namespace)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    call = _libc.syscall(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, ctypes.byref(attributes), size)
    _check(call, "mount_setattr(IDMAP)")


def attach_mount(tree: int, target: str) -> None:
    call = _libc.syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, target.encode(), _MOVE_MOUNT_F_EMPTY_PATH)
    _check(call, f"move_mount {target}")


def inherit_only(descriptors: list[int]) -> None:
    """Let the next program inherit stdin, stdout, stderr and these, and nothing else."""
    close_range, cloexec = 436, 1 << 2
    _check(_libc.syscall(close_range, 3, ctypes.c_uint(0xFFFFFFFF), cloexec), "close_range")
    for descriptor in descriptors:
        os.set_inheritable(descriptor, True)


def close_all_but(descriptors: list[int]) -> None:
    """Close everything else, now."""
    wanted = sorted({0, 1, 2, *descriptors})
    for low, high in zip(wanted, [*wanted[1:], 1 << 20], strict=True):
        os.closerange(low + 1, high)


@contextlib.contextmanager
def as_owner(uid: int, gid: int) -> Iterator[None]:
    """For this thread only, make files as another user: root does in a workspace what its owner would."""
    if os.geteuid() != 0:
        yield
        return
    before = _libc.setfsgid(gid), _libc.setfsuid(uid)
    try:
        yield
    finally:
        _libc.setfsuid(before[1])
        _libc.setfsgid(before[0])


def receive_descriptors(sock: socket.socket, most: int) -> tuple[bytes, list[int]]:
    """One message with the descriptors that came along, none of them inherited by other programs."""
    message, descriptors, _flags, _address = socket.recv_fds(sock, 1 << 16, most)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return message, descriptors


def wait_status(pidfd: int) -> int | None:
    """How a process that is not our child ended, as `waitpid` would say it; None before Linux 6.15."""
    get_info, exit_wanted, size = 0xC040FF0B, 1 << 3, 64
    try:
        raw = fcntl.ioctl(pidfd, get_info, struct.pack("=Q", exit_wanted).ljust(size, b"\0"))
    except OSError:
        return None
    (mask,), (status,) = struct.unpack_from("=Q", raw), struct.unpack_from("=i", raw, size - 4)
    return status if mask & exit_wanted else None


def shares_descriptors(pid: int, other: int) -> bool:
    """Whether two tasks surely have one table of descriptors."""
    number = {"x86_64": 312, "aarch64": 272}[platform.machine()]
    return bool(_libc.syscall(number, pid, other, _KCMP_FILES, ctypes.c_ulong(0), ctypes.c_ulong(0)) == 0)


class _IoVector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class MemoryReader:
    """Reads other processes' memory through one buffer of its own. Not for use by several threads."""

    size = 4096

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(self.size)
        self._local = _IoVector(ctypes.cast(self._buffer, ctypes.c_void_p), self.size)
        self._remote = _IoVector(0, 0)
        self._pointers = (ctypes.byref(self._local), 1, ctypes.byref(self._remote), 1, 0)

    def read(self, pid: int, address: int, length: int) -> bytes:
        """Up to `length` bytes, fewer at the end of a mapping; empty when nothing can be read."""
        if not 0 < address < 1 << 63:
            return b""
        self._remote.base, self._remote.length = address, min(length, self.size)
        got: int = _libc.process_vm_readv(pid, *self._pointers)
        return ctypes.string_at(self._buffer, got) if got > 0 else b""


class _FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def install_filter(program: bytes) -> int:
    """Put the seccomp program on this process and what it becomes; returns the listener of its notifications."""
    wait_killable, new_listener = 1 << 5, 1 << 3
    packed = _FilterProgram(len(program) // 8, program)
    number = _SECCOMP[platform.machine()]
    listener: int = _libc.syscall(number, 1, new_listener | wait_killable, ctypes.byref(packed))
    if listener < 0:  # before Linux 5.19
        listener = _check(_libc.syscall(number, 1, new_listener, ctypes.byref(packed)), "seccomp(NEW_LISTENER)")
    return listener


class SyscallNotification(NamedTuple):
    """A system call that waits for the supervisor. `pid` is in the listener's own process namespace."""

    id: int
    pid: int
    number: int
    arch: int
    args: tuple[int, ...]


_NOTIF = struct.Struct("=QIIiIQ6Q")
_EMPTY = bytes(_NOTIF.size)
_RESPONSE = struct.Struct("=QqiI")
_RECV, _SEND, _ID_VALID, _SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082102, 0x40082104
_CONTINUE, _SYNC_WAKE_UP = 1, 1


def prefer_same_core(listener: int) -> None:
    """Hand calls over without waking another core (Linux 6.6): halves the cost of an event. Optional."""
    try:
        fcntl.ioctl(listener, _SET_FLAGS, _SYNC_WAKE_UP)
    except OSError:
        return


def move_to_our_core(pid: int) -> set[int]:
    """While a sandbox is built it and we answer each other in turn; on one core no time is lost in waking the other."""
    cores = os.sched_getaffinity(pid)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(pid, {_libc.sched_getcpu()} & cores or cores)
    return cores


def set_affinity(pid: int, cores: set[int]) -> None:
    with contextlib.suppress(OSError):
        os.sched_setaffinity(pid, cores)


def receive_notification(listener: int) -> SyscallNotification | None:
    """The next waiting call; None when its process was killed meanwhile."""
    try:
        raw = fcntl.ioctl(listener, _RECV, _EMPTY)
    except (FileNotFoundError, InterruptedError):
        return None
    identity, pid, _flags, number, arch, _pointer, *args = _NOTIF.unpack(raw)
    return SyscallNotification(identity, pid, number & 0xFFFFFFFF, arch, tuple(args))


def still_waiting(listener: int, notification: SyscallNotification) -> bool:
    """Whether the caller is still there, so that what was read from its /proc entry was its own."""
    try:
        fcntl.ioctl(listener, _ID_VALID, struct.pack("=Q", notification.id))
    except FileNotFoundError:
        return False
    return True


def answer_notification(listener: int, notification: SyscallNotification, deny_with: int | None) -> None:
    """Let the call go on (None), or fail it with an error number."""
    error, flags = (-deny_with, 0) if deny_with else (0, _CONTINUE)
    try:
        fcntl.ioctl(listener, _SEND, _RESPONSE.pack(notification.id, 0, error, flags))
    except FileNotFoundError:
        return  # killed while it waited
