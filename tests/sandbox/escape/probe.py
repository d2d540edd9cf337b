"""A probe: one attempt to get out, as data.

The body is Python that runs inside. It raises OSError (or `Blocked`) when the isolation holds; its end means that
the attempt worked. Around it stands a prelude with a random nonce, by which the attempt is found again in the record,
and `G`, what was planted on the host for it to find.
"""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

NUMBERS = {
    **{"ioctl": 16, "shmget": 29, "kill": 62, "uselib": 134, "mknod": 133, "personality": 135, "vhangup": 153},
    **{"chmod": 90, "fchmod": 91, "creat": 85, "open": 2, "socket": 41, "clone": 56, "ptrace": 101, "syslog": 103},
    **{"modify_ldt": 154, "pivot_root": 155, "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164},
    **{"mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170, "tkill": 200},
    **{"setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179},
    **{"nfsservctl": 180, "lookup_dcookie": 212, "clock_settime": 227, "tgkill": 234, "kexec_load": 246},
    **{"add_key": 248, "request_key": 249, "keyctl": 250, "openat": 257, "mknodat": 259, "fchmodat": 268},
    **{"unshare": 272, "perf_event_open": 298, "fanotify_init": 300, "fanotify_mark": 301, "name_to_handle_at": 303},
    **{"open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "kcmp": 312},
    **{"process_vm_writev": 311, "finit_module": 313, "seccomp": 317, "kexec_file_load": 320, "bpf": 321},
    **{"execveat": 322, "userfaultfd": 323, "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426},
    **{"io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432},
    **{"fspick": 433, "pidfd_open": 434, "clone3": 435, "openat2": 437, "pidfd_getfd": 438, "process_madvise": 440},
    **{"mount_setattr": 442, "quotactl_fd": 443, "fchmodat2": 452, "open_tree_attr": 467, "capset": 126},
    **{"rt_sigqueueinfo": 129, "landlock_create_ruleset": 444},
}
"""x86-64 system calls by number, written down apart from the filter's own table so that one checks the other."""

PRELUDE = """
import ctypes, errno, json, mmap, os, signal, socket, stat, struct, sys, time
G = json.load(sys.stdin)
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
class Blocked(Exception): pass
def _c(a):
    if isinstance(a, str): a = a.encode()
    return ctypes.c_long(a) if isinstance(a, int) else a
def call(name, *args):
    "The system call, or OSError."
    result = libc.syscall(*map(_c, (NR[name] if isinstance(name, str) else name, *args)))
    if result == -1: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def reach(name, *args):
    "Any answer of the kernel's own, a complaint about the arguments too, counts as having got through."
    try: return call(name, *args)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EAFNOSUPPORT): raise
        return -error.errno
def need(fact, why):
    if not fact: raise Blocked(why)
"""

_TAIL = """
except (OSError, Blocked) as error: print('blocked:', error, flush=True)
else: print('ESCAPED:', NONCE, flush=True)
"""

ROOT = frozenset({"call-filter", "no-capabilities", "drop-user", "own-users", "no-nested-users"})
"""Taken away together, the command is the host's root with every capability: for harmless arguments only."""


@dataclass(frozen=True)
class Probe:
    name: str
    family: str
    body: str
    logged: str | None = None
    """The system call that must be in the record, with the nonce."""
    killed_by: str | None = None
    or_refused: bool = False
    """Being refused what would go over the limit will do too: a backend may not be able to count it."""
    argv: tuple[str, ...] = ()
    """Run this instead of Python; `{nonce}` stands for the nonce."""
    policy: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    during: Callable[[Any, Any, Any], str | None] | None = None
    """What the host does to its side of the workspace meanwhile: (sandbox, workspace, stage); returns what escaped."""
    after: Callable[[Any, Any, Any], str | None] | None = None
    """The same, when the command has ended."""
    slow: bool = False
    unprivileged: bool = True
    """False where only a control group can hold the limit, or where there is no group to find."""

    escapes_without: frozenset[str] = frozenset()
    """Hardening measures without which the probe gets through."""
    granted: dict[str, Any] = field(default_factory=dict)
    """What the policy grants in that weaker sandbox (values are formatted with the stage's facts)."""
    planted: dict[str, Any] = field(default_factory=dict)
    """Facts replaced in the weaker run, so that the same attempt finds something it may have."""
    bare: bool = False
    """Harmless enough to show it working on the host itself."""
    bomb: bool = False
    """Goes off in full under roomy limits, which shows that it was the limit that stopped it."""
    naive: bool = False
    """A trap that catches a host which reads and writes the workspace without care."""
    unshown: str = ""
    """Why no run shows it getting through."""

    @property
    def sharp(self) -> bool:
        return bool(self.escapes_without or self.granted or self.planted or self.bare or self.naive or self.bomb)


def source(probe: Probe, nonce: str) -> str:
    """The program that runs inside. The nonce comes first, so that a cut command line still shows it; the facts come on
    standard input, so that finding them on a command line is a find."""
    named = {name: number for name, number in NUMBERS.items() if f'"{name}"' in probe.body}
    head = f"NONCE = {nonce!r}\nNR = {named!r}"
    body = textwrap.indent(textwrap.dedent(probe.body).strip("\n"), "    ")
    return f"{head}{PRELUDE}try:\n{body}\n{_TAIL}"
