"""Changing what is mounted, and leaving the sandbox's namespaces."""

from tests.sandbox.escape.probe import ROOT, Probe

USERS = frozenset({"call-filter", "no-nested-users"})


def _mount(name: str, body: str, logged: str, unshown: str = "") -> Probe:
    return Probe(
        name,
        "mounts",
        body,
        logged=logged,
        escapes_without=frozenset() if unshown else ROOT,
        unshown=unshown,
    )


_MOUNTS = [
    _mount("proc", 'os.mkdir("/tmp/p"); call("mount", NONCE, "/tmp/p", "proc", 0, 0)', "mount"),
    _mount("sysfs", 'os.mkdir("/tmp/s"); call("mount", NONCE, "/tmp/s", "sysfs", 1, 0)', "mount"),
    _mount("tmpfs", 'call("mount", NONCE, "/tmp", "tmpfs", 0, 0)', "mount"),
    _mount("device", 'reach("mount", "/dev/" + NONCE, "/tmp", "ext4", 1, 0)', "mount"),
    _mount("cgroup", 'reach("mount", NONCE, "/tmp", "cgroup2", 1, 0)', "mount"),
    _mount("bind", 'os.mkdir("/tmp/b"); call("mount", "/usr", "/tmp/b", NONCE, 4096, 0)', "mount"),
    _mount("remount-writable", 'call("mount", NONCE, "/usr", 0, 32 | 4096, 0)', "mount"),
    _mount("make-shared", 'call("mount", NONCE, "/", 0, (1 << 20) | 16384, 0)', "mount"),
    _mount(
        "overlay",
        """
        for name in ('u', 'w', 'm'): os.mkdir('/tmp/' + name)
        reach("mount", NONCE, "/tmp/m", "overlay", 0, "lowerdir=/usr,upperdir=/tmp/u,workdir=/tmp/w")
        """,
        "mount",
    ),
    _mount("unmount", 'call("umount2", "/tmp", 2)', "umount2"),
    _mount("unmount-proc-masks", 'reach("umount2", "/proc/" + NONCE, 2)', "umount2"),
    _mount("pivot-root", 'reach("pivot_root", "/tmp/" + NONCE, "/tmp/" + NONCE)', "pivot_root"),
    _mount(
        "chroot-and-climb",
        """
        os.mkdir('/tmp/' + NONCE)
        call("chroot", '/tmp/' + NONCE)
        for _ in range(64): os.chdir('..')
        call("chroot", '.')
        os.stat('/usr')
        """,
        "chroot",
    ),
    _mount("open-tree", 'call("open_tree", -100, "/usr", 1)', "open_tree"),
    _mount("open-tree-attributes", 'reach("open_tree_attr", -100, "/usr", 1, 0, 0)', "open_tree_attr"),
    _mount("move-mount", 'reach("move_mount", -100, "/" + NONCE, -100, "/tmp", 0)', "move_mount"),
    _mount("fsopen", 'call("fsopen", "tmpfs", 0)', "fsopen"),
    _mount("fsopen-unknown", 'reach("fsopen", NONCE, 0)', "fsopen"),
    _mount("fsconfig", 'reach("fsconfig", 99, 0, NONCE, 0, 0)', "fsconfig"),
    _mount("fsmount", 'reach("fsmount", 99, 0, 0)', "fsmount"),
    _mount("fspick", 'call("fspick", -100, "/tmp", 0)', "fspick"),
    _mount(
        "mount-setattr",
        'call("mount_setattr", -100, "/usr", 0, struct.pack("=4Q", 0, 1, 0, 0), 32)',
        "mount_setattr",
    ),
]

_UNSHARE = {
    "users": (0x10000000, USERS),
    "mounts": (0x00020000, ROOT),
    "processes": (0x20000000, ROOT),
    "network": (0x40000000, ROOT),
    "ipc": (0x08000000, ROOT),
    "names": (0x04000000, ROOT),
    "cgroups": (0x02000000, ROOT),
    "time": (0x00000080, ROOT),
}

_NAMESPACES = [
    *(
        Probe(
            f"unshare-{name}",
            "namespaces",
            f'call("unshare", {flag})',
            logged="unshare",
            escapes_without=without,
        )
        for name, (flag, without) in _UNSHARE.items()
    ),
    *(
        Probe(
            f"clone-{name}",
            "namespaces",
            f"""
            child = call("clone", {flag} | 17, 0, 0, 0, 0)
            if child == 0: os._exit(0)
            os.waitpid(child, 0)
            """,
            logged="clone",
            escapes_without=without,
        )
        for name, (flag, without) in _UNSHARE.items()
        if name != "time"
    ),
    Probe(
        "clone3",
        "namespaces",
        """
        child = reach("clone3", struct.pack('=8Q', 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64)
        if child == 0: os._exit(0)
        """,
        escapes_without=frozenset({"call-filter"}),
    ),
    Probe(
        "unshare-everything",
        "namespaces",
        'call("unshare", 0x7E020000)',
        logged="unshare",
        escapes_without=USERS,
    ),
    Probe(
        "nested-user-then-mount",
        "namespaces",
        """
        call("unshare", 0x10020000)
        call("mount", NONCE, '/tmp', 'tmpfs', 0, 0)
        """,
        logged="unshare",
        escapes_without=USERS,
    ),
    *(
        Probe(
            f"setns-{name}",
            "namespaces",
            f"""
            file = os.open('/proc/self/ns/{name}', os.O_RDONLY)
            reach("setns", file, 0)
            """,
            logged="setns",
            escapes_without=ROOT,
        )
        for name in ("mnt", "net", "ipc", "uts", "cgroup")
    ),
    Probe(
        "setns-of-the-first-process",
        "namespaces",
        """
        call("setns", os.open('/proc/1/ns/mnt', os.O_RDONLY), 0)
        """,
        unshown="bubblewrap forbids opening it by itself",
    ),
    Probe(
        "setns-by-process",
        "namespaces",
        'reach("setns", os.pidfd_open(os.getpid()), 0x00020000)',
        logged="setns",
        escapes_without=ROOT,
    ),
    Probe(
        "ioctl-to-the-parent-namespace",
        "namespaces",
        """
        import fcntl
        file = os.open('/proc/self/ns/user', os.O_RDONLY)
        fcntl.ioctl(file, 0xB701)
        """,
        unshown="the kernel gives no way to a parent whatever is taken away",
    ),
]

PROBES = [*_MOUNTS, *_NAMESPACES]
