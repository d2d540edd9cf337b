"""The call filter: rules for system calls, and the BPF program that they compile to.

A rule has one of three actions. `NOTIFY` hands the call to the supervisor, which records and denies it: an *event*.
`ENOSYS` is a quiet "this kernel has no such call", for calls that honest libraries try first and can do without.
`EOPNOTSUPP` is a quiet "not on this file system", for taking disk space without writing: a program writes instead.
The supervisor never lets a notified call through once hostile code runs (a second thread could swap the arguments
after the check); calls that the namespaces make harmless anyway are the only exception, see `syscall_events.py`.

Standard library only.
"""

import errno
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from gametape.sandbox import syscalls

ALLOW = 0x7FFF0000
NOTIFY = 0x7FC00000
ENOSYS = 0x00050000 | errno.ENOSYS
EOPNOTSUPP = 0x00050000 | errno.EOPNOTSUPP

NEW_NAMESPACE_FLAGS = 0x7E020080  # CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET and TIME
SETID_BITS = 0o6000
O_CREAT_OR_TMPFILE = 0o100 | 0o20000000
TYPE_BITS, CHARACTER_DEVICE, BLOCK_DEVICE = 0o170000, 0o020000, 0o060000
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
RESERVATIONS = (0x40305828, 0x4030582A, 0x40305839)  # FS_IOC_RESVSP, RESVSP64 and ZERO_RANGE: the older fallocate
PUNCH_HOLE, COLLAPSE_RANGE = 0x02, 0x08
LOOSENED_MEMORY = 0x0440000  # READ_IMPLIES_EXEC, ADDR_NO_RANDOMIZE
NEW_LISTENER = 1 << 3
AT_EMPTY_PATH = 0x1000

SOCKET_FAMILIES = {
    "AF_UNIX": 1,
    "AF_INET": 2,
    "AF_INET6": 10,
    "AF_NETLINK": 16,
    "AF_PACKET": 17,
    "AF_VSOCK": 40,
}

ALWAYS_DENIED = (
    *("mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr"),
    *("fsopen", "fsmount", "fsconfig", "fspick", "mount_setattr", "unshare", "setns"),
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd"),
    *("perf_event_open", "bpf", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register"),
    *("fanotify_init", "fanotify_mark", "lookup_dcookie", "modify_ldt", "add_key", "request_key", "keyctl"),
    *("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "swapon", "swapoff"),
    *(
        "reboot",
        "sethostname",
        "setdomainname",
        "syslog",
        "acct",
        "quotactl",
        "quotactl_fd",
        "iopl",
        "ioperm",
    ),
    *("settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "vhangup", "nfsservctl", "uselib"),
    *("open_by_handle_at", "name_to_handle_at"),
)

PathArgument = tuple[int | None, int]
"""Which argument is the directory that a path starts from, if any, and which is the path."""
LOOK_UPS: dict[str, tuple[PathArgument, ...]] = {
    **dict.fromkeys(("stat", "lstat", "access", "readlink"), ((None, 0),)),
    **dict.fromkeys(("newfstatat", "statx", "faccessat", "faccessat2", "readlinkat"), ((0, 1),)),
}
"""Calls that ask about a path. They are only seen, where files are traced."""
NAME_CHANGES: dict[str, tuple[PathArgument, ...]] = {
    **dict.fromkeys(("rename", "link"), ((None, 0), (None, 1))),
    **dict.fromkeys(("renameat", "renameat2", "linkat"), ((0, 1), (2, 3))),
    **dict.fromkeys(("unlink", "truncate"), ((None, 0),)),
    **{"unlinkat": ((0, 1),), "symlink": ((None, 1),), "symlinkat": ((1, 2),)},
}
"""Calls that put another file in the place of one. They are only seen, where files are traced."""


@dataclass(frozen=True)
class ArgumentTest:
    """`(args[arg] & mask)` is (or, negated, is not) one of `values`; with no values: is not zero."""

    arg: int
    mask: int = 0xFFFFFFFF
    values: tuple[int, ...] = ()
    negated: bool = False


@dataclass(frozen=True)
class SyscallRule:
    """Stop `syscall` with `action` when every test holds."""

    syscall: str
    action: int = NOTIFY
    tests: tuple[ArgumentTest, ...] = ()


WITHOUT_CONTROL_GROUP = (SyscallRule("shmget", ENOSYS), SyscallRule("clone"), SyscallRule("fork"), SyscallRule("vfork"))
"""Without a control group, System V segments are not counted for any process, and the supervisor counts forks."""


def default_rules(
    families: Iterable[str],
    denied: Iterable[str],
    watch_opens: bool,
    loopback: bool,
    trace_opens: bool = False,
    trace_look_ups: bool = False,
) -> list[SyscallRule]:
    """The rules of the call filter for a policy."""
    devices = (CHARACTER_DEVICE, BLOCK_DEVICE)
    allowed = tuple(SOCKET_FAMILIES[name] for name in families)
    other_families = (ArgumentTest(0, values=allowed, negated=True),) if allowed else ()
    rules = [SyscallRule(name) for name in dict.fromkeys((*ALWAYS_DENIED, *denied))]
    rules += [
        SyscallRule("execve"),  # seen, never denied: the first one inside is where hostile code begins
        SyscallRule("execveat"),
        SyscallRule("clone", tests=(ArgumentTest(0, NEW_NAMESPACE_FLAGS),)),
        SyscallRule("clone3", ENOSYS),  # its flags lie in memory, where a filter cannot look; libc falls back to clone
        SyscallRule("socket", tests=other_families),
        SyscallRule("socketpair", tests=(ArgumentTest(0, values=(SOCKET_FAMILIES["AF_UNIX"],), negated=True),)),
        SyscallRule("seccomp", tests=(ArgumentTest(1, NEW_LISTENER),)),
        SyscallRule(
            "personality", tests=(ArgumentTest(0, values=(0xFFFFFFFF,), negated=True), ArgumentTest(0, LOOSENED_MEMORY))
        ),
        SyscallRule("ioctl", tests=(ArgumentTest(1, values=(TIOCSTI, TIOCLINUX)),)),
        SyscallRule("mknod", tests=(ArgumentTest(1, TYPE_BITS, devices),)),
        SyscallRule("mknodat", tests=(ArgumentTest(2, TYPE_BITS, devices),)),
        # A set-id file would keep its power on the host after the sandbox is gone.
        SyscallRule("chmod", tests=(_setid(1),)),
        SyscallRule("fchmod", tests=(_setid(1),)),
        SyscallRule("fchmodat", tests=(_setid(2),)),
        SyscallRule("fchmodat2", tests=(_setid(2),)),
        SyscallRule("mknod", tests=(_setid(1),)),
        SyscallRule("mknodat", tests=(_setid(2),)),
        SyscallRule("creat", tests=(_setid(1),)),
        SyscallRule("open", tests=(ArgumentTest(1, O_CREAT_OR_TMPFILE), _setid(2))),
        SyscallRule("openat", tests=(ArgumentTest(2, O_CREAT_OR_TMPFILE), _setid(3))),
        SyscallRule("openat2", ENOSYS),  # its mode lies in memory
        # A Landlock rule would keep a file's space after its name is gone and it is closed, where no count finds it.
        *(SyscallRule(f"landlock_{name}", ENOSYS) for name in ("create_ruleset", "add_rule", "restrict_self")),
        # Gigabytes in a moment: space may only be taken as fast as it is written, or given back.
        SyscallRule("fallocate", EOPNOTSUPP, (ArgumentTest(1, PUNCH_HOLE | COLLAPSE_RANGE, (0,)),)),
        SyscallRule("ioctl", EOPNOTSUPP, (ArgumentTest(1, values=RESERVATIONS),)),
    ]
    if watch_opens or trace_opens:
        rules += [SyscallRule("open"), SyscallRule("openat")]
    if trace_opens:
        rules.append(SyscallRule("creat"))
    if trace_look_ups:
        flags_at = {"newfstatat": 3, "statx": 2}
        rules += [SyscallRule(name) for name in (*LOOK_UPS, *NAME_CHANGES) if name not in flags_at]
        rules += [SyscallRule(name, tests=(_named_path(at),)) for name, at in flags_at.items()]
    if loopback:
        rules += [SyscallRule("connect"), SyscallRule("sendto", tests=(ArgumentTest(4),))]
    return rules


def _named_path(arg: int) -> ArgumentTest:
    """Whether a call is about a path, and not about an open file (AT_EMPTY_PATH)."""
    return ArgumentTest(arg, AT_EMPTY_PATH, (AT_EMPTY_PATH,), negated=True)


def _setid(arg: int) -> ArgumentTest:
    return ArgumentTest(arg, SETID_BITS)


def compile_rules(rules: Iterable[SyscallRule]) -> bytes:
    """The classic-BPF program for this machine: an array of `struct sock_filter`."""
    numbers = syscalls.numbers()
    program = [
        *_load(4),  # architecture
        _jump("eq", syscalls.AUDIT_ARCH[syscalls.machine()], 1, 0),
        _ret(NOTIFY),
        *_load(0),  # number
        *([_jump("set", syscalls.X32_BIT, 0, 1), _ret(NOTIFY)] if syscalls.machine() == "x86_64" else []),
        _jump("gt", syscalls.LAST_KNOWN, 0, 1),
        _ret(ENOSYS),
    ]
    for rule in rules:
        if rule.syscall in numbers:
            program += _block(numbers[rule.syscall], rule)
    program.append(_ret(ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


_Instruction = tuple[int, int, int, int]


def _block(number: int, rule: SyscallRule) -> list[_Instruction]:
    """One rule: fall through to the next block unless the number and every test match."""
    body = [_ret(rule.action)]
    for test in reversed(rule.tests):
        body = [*_test(test, miss=len(body)), *body]
    return [*_load(0), _jump("eq", number, 0, len(body)), *body]


def _test(test: ArgumentTest, miss: int) -> list[_Instruction]:
    """Instructions that fall through when the test holds and skip `miss` more instructions when it does not."""
    head = [*_load(16 + 8 * test.arg), (0x54, 0, 0, test.mask)]
    if not test.values:
        return [*head, _jump("eq", 0, miss, 0)]
    last = len(test.values) - 1
    jumps: list[_Instruction] = []
    for index, value in enumerate(test.values):
        to_end = last - index
        if test.negated:
            jumps.append(_jump("eq", value, to_end + miss, 0))
        else:
            jumps.append(_jump("eq", value, to_end, miss if index == last else 0))
    return [*head, *jumps]


def _load(offset: int) -> list[_Instruction]:
    return [(0x20, 0, 0, offset)]


def _jump(kind: str, value: int, when_true: int, when_false: int) -> _Instruction:
    return ({"eq": 0x15, "gt": 0x25, "set": 0x45}[kind], when_true, when_false, value)


def _ret(action: int) -> _Instruction:
    return (0x06, 0, 0, action)
