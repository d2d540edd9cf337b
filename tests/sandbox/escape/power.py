"""Device nodes, set-id files and users: ways to more power than the command was given."""

from tests.sandbox.escape.probe import ROOT, Probe

FILTER = frozenset({"call-filter"})


def _node(name: str, body: str, logged: str) -> Probe:
    return Probe(name, "devices", body, logged=logged, escapes_without=ROOT)


_MAKE = [
    _node("character-in-workspace", 'os.mknod("/workspace/" + NONCE, 0o20666, os.makedev(1, 1))', "mknodat"),
    _node("block-in-workspace", 'os.mknod("/workspace/" + NONCE, 0o60666, os.makedev(254, 0))', "mknodat"),
    _node("character-in-tmp", 'call("mknod", "/tmp/" + NONCE, 0o20666, os.makedev(1, 1))', "mknod"),
    _node("block-in-tmp", 'call("mknod", "/tmp/" + NONCE, 0o60666, os.makedev(254, 0))', "mknod"),
    _node("node-in-shm", 'call("mknodat", -100, "/dev/shm/" + NONCE, 0o20666, os.makedev(10, 232))', "mknodat"),
]

_OPEN = [
    Probe(
        f"open-{path.replace('/', '-')}",
        "devices",
        f"""os.close(os.open(G["granted_file"] or '/dev/{path}', os.O_RDONLY))""",
        logged="openat" if path in ("mem", "kmem", "port") else None,
        granted={"read_only": ("{outside}",)},
        planted={"granted_file": "{outside}/open"},
    )
    for path in (
        *("vda", "sda", "nvme0n1", "mem", "kmem", "port", "kmsg", "kvm", "fuse", "vsock", "loop0", "loop-control"),
        *("userfaultfd", "net/tun", "console", "tty0", "dri/card0", "nvidia0"),
    )
]

_DEVICES = [
    *_MAKE,
    *_OPEN,
    Probe(
        "host-terminals",
        "devices",
        "need([name for name in os.listdir('/dev/pts') if name.isdigit()], 'none')",
        bare=False,
        unshown="the terminals inside are always its own",
    ),
    Probe(
        "write-to-a-device-directory",
        "devices",
        "open('/dev/' + NONCE, 'w')",
        escapes_without=frozenset({"sealed-root"}),
    ),
]


def _set_id(name: str, body: str, logged: str) -> Probe:
    return Probe(name, "set-id", body, logged=logged, escapes_without=FILTER)


_AT = "path = '/workspace/' + NONCE\n"
_SET_ID = [
    _set_id("chmod", _AT + 'open(path, "w").close(); call("chmod", path, 0o4755)', "chmod"),
    _set_id("chmod-group", _AT + 'open(path, "w").close(); call("chmod", path, 0o2755)', "chmod"),
    _set_id("fchmod", _AT + "os.fchmod(os.open(path, os.O_CREAT | os.O_RDWR), 0o6755)", "fchmod"),
    _set_id("fchmodat", _AT + 'open(path, "w").close(); call("fchmodat", -100, path, 0o4755)', "fchmodat"),
    _set_id("fchmodat2", _AT + 'open(path, "w").close(); call("fchmodat2", -100, path, 0o4755, 0)', "fchmodat2"),
    _set_id("open", _AT + 'call("open", path, 0o102, 0o4755)', "open"),
    _set_id("openat", _AT + 'call("openat", -100, path, 0o102, 0o4755)', "openat"),
    _set_id("openat-nameless", 'call("openat", -100, "/workspace", 0o20200002, 0o4755)', "openat"),
    _set_id("creat", _AT + 'call("creat", path, 0o4755)', "creat"),
    _set_id("mknod", _AT + 'call("mknod", path, 0o104755, 0)', "mknod"),
    _set_id("mknodat", _AT + 'call("mknodat", -100, path, 0o104755, 0)', "mknodat"),
    Probe(
        "openat2",
        "set-id",
        _AT + 'call("openat2", -100, path, struct.pack("=QQQ", 0o102, 0o4755, 0), 24)',
        escapes_without=FILTER,
    ),
    Probe(
        "file-capability",
        "set-id",
        _AT
        + """
open(path, 'w').close()
os.setxattr(path, 'security.capability', struct.pack('=5I', 0x2000001, 1, 0, 0, 0))
""",
        escapes_without=ROOT,
    ),
    Probe(
        "copy-of-a-set-id-program",
        "set-id",
        """
        import shutil
        shutil.copy2('/usr/bin/su', '/workspace/' + NONCE)
        """,
        logged="chmod",
        unshown="needs the host's su to be set-id and its mode to be kept, which is the chmod probe again",
    ),
]

_USERS = [
    Probe("become-root", "users", "os.setuid(0)", escapes_without=ROOT),
    Probe("become-root-all", "users", "os.setresuid(0, 0, 0)", escapes_without=ROOT),
    Probe("become-root-group", "users", "os.setgid(0)", escapes_without=ROOT),
    Probe("become-another", "users", "os.setuid(1)", escapes_without=ROOT),
    Probe("join-groups", "users", "os.setgroups([0, 42])", escapes_without=ROOT),
    Probe(
        "gain-capabilities",
        "users",
        'call("capset", struct.pack("=Ii", 0x20080522, 0), struct.pack("=6I", 1 << 21, 1 << 21, 0, 0, 0, 0))',
        escapes_without=ROOT,
    ),
    Probe(
        "ambient-capability",
        "users",
        "need(libc.prctl(23, 21, 0, 0, 0) == 1, 'not in the bounding set')",
        escapes_without=ROOT,
    ),
    Probe(
        "set-id-program-gains-power",
        "users",
        """
        import subprocess
        done = subprocess.run(['/usr/bin/su', '-c', 'id -u'], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        need(done.stdout.strip() == '0', f'refused: {done.stderr.strip()[:200]}')
        """,
        unshown="no-new-privileges is set before bubblewrap and again by it",
    ),
    Probe(
        "mount-program",
        "users",
        """
        import subprocess
        done = subprocess.run(['/usr/bin/mount', '-t', 'tmpfs', NONCE, '/tmp'], capture_output=True, text=True)
        need(done.returncode == 0, f'refused: {done.stderr.strip()[:200]}')
        """,
        escapes_without=ROOT,
    ),
    Probe(
        "passwd-program",
        "users",
        """
        import subprocess
        done = subprocess.run(['/usr/bin/passwd', '-S', 'root'], capture_output=True, text=True)
        need(done.returncode == 0, f'refused: {done.stderr.strip()[:200]}')
        """,
        unshown="no-new-privileges is set before bubblewrap and again by it",
    ),
    Probe(
        "new-privileges-allowed",
        "users",
        "need(libc.prctl(39, 0, 0, 0, 0) == 0, 'no new privileges')",
        bare=True,
    ),
    Probe(
        "change-owner",
        "users",
        "os.chown('/workspace/own', 0, 0)",
        escapes_without=ROOT,
    ),
]

PROBES = [*_DEVICES, *_SET_ID, *_USERS]
