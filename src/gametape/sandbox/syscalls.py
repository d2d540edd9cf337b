"""The system calls that the filter knows by name, with their numbers on the supported machines.

Standard library only: the keeper and the host both read this table.
"""

import platform

# name: (x86_64, aarch64); None where the machine has no such call.
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "fsconfig": (431, 431),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "clone": (56, 220),
    "clone3": (435, 435),
    "fork": (57, None),
    "vfork": (58, None),
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "execve": (59, 221),
    "execveat": (322, 281),
    # large kernel surfaces
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "lookup_dcookie": (212, 18),
    "seccomp": (317, 277),
    "personality": (135, 92),
    "modify_ldt": (154, None),
    # rules for files, which hold files that have no name any more
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
    # keyrings
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # the machine itself
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "syslog": (103, 116),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "iopl": (172, None),
    "ioperm": (173, None),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "vhangup": (153, 58),
    "nfsservctl": (180, 42),
    "uselib": (134, None),
    # files
    "read": (0, 63),
    "open": (2, None),
    "openat": (257, 56),
    "openat2": (437, 437),
    "creat": (85, None),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "stat": (4, None),
    "lstat": (6, None),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "truncate": (76, 45),
    "fallocate": (285, 47),
    "ioctl": (16, 29),
    # memory that belongs to no process
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    # sockets
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "sendto": (44, 206),
}

# The newest call that was looked at. A kernel may have more: those answer ENOSYS, as on an older kernel.
LAST_KNOWN = 469

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
FOREIGN_ARCH_NAMES = {0x40000003: "i386", 0xC000003E: "x86_64", 0x40000028: "arm", 0xC00000B7: "aarch64"}
X32_BIT = 0x40000000


def machine() -> str:
    return platform.machine()


def supported() -> bool:
    return machine() in AUDIT_ARCH


def numbers() -> dict[str, int]:
    """The table for this machine."""
    column = list(AUDIT_ARCH).index(machine())
    return {name: number for name, row in _NUMBERS.items() if (number := row[column]) is not None}


def names() -> frozenset[str]:
    """Every name that a policy may deny, on any machine."""
    return frozenset(_NUMBERS)


def describe(number: int, arch: int) -> str:
    """A readable name for a call that was seen, foreign architectures included."""
    if arch != AUDIT_ARCH[machine()]:
        return f"{FOREIGN_ARCH_NAMES.get(arch, hex(arch))}:{number}"
    if number & X32_BIT and machine() == "x86_64":
        return f"x32:{number & ~X32_BIT}"
    return _NAMES.get(number) or f"syscall_{number}"


_NAMES = {number: name for name, number in numbers().items()} if supported() else {}
