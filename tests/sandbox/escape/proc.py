"""What /proc, the environment and inherited descriptors give away, and what can be written through /proc."""

from tests.sandbox.escape.probe import ROOT, Probe


def _open_for_writing(name: str, path: str, unshown: str = "", logged: str | None = None) -> Probe:
    """Opening is enough: nothing is written, so that it does no harm if the isolation fails."""
    body = f"os.close(os.open({path!r}, os.O_WRONLY))"
    return Probe(name, "proc", body, logged=logged, escapes_without=frozenset() if unshown else ROOT, unshown=unshown)


_WRITES = [
    _open_for_writing("core-pattern", "/proc/sys/kernel/core_pattern"),
    _open_for_writing("modprobe-path", "/proc/sys/kernel/modprobe", unshown="the kernel may have no modules"),
    _open_for_writing("sysrq-trigger", "/proc/sysrq-trigger", unshown="bubblewrap covers it whatever is taken away"),
    _open_for_writing("overcommit", "/proc/sys/vm/overcommit_memory"),
    _open_for_writing("randomize-va-space", "/proc/sys/kernel/randomize_va_space"),
    _open_for_writing("binfmt", "/proc/sys/fs/binfmt_misc/register", unshown="not mounted in every host"),
    _open_for_writing("irq-affinity", "/proc/irq/default_smp_affinity", unshown="bubblewrap covers /proc/irq"),
    _open_for_writing("kcore", "/proc/kcore", unshown="covered or read-only everywhere", logged="openat"),
]

_PROC = [
    Probe(
        "first-process-environment",
        "proc",
        'need(G["secret"].encode() in open("/proc/1/environ", "rb").read(), "not there")',
        escapes_without=frozenset({"empty-environment", "call-filter"}),
    ),
    Probe(
        "every-environment",
        "proc",
        """
        pids = [name for name in os.listdir('/proc') if name.isdigit()]
        if str(G["victim"]) in pids: pids = [str(G["victim"])]
        found = False
        for pid in pids:
            try: found |= G["secret"].encode() in open(f'/proc/{pid}/environ', 'rb').read()
            except OSError: pass
        need(found, 'no environment of the host')
        """,
        escapes_without=ROOT | {"own-processes"},
    ),
    Probe(
        "first-process-command-line",
        "proc",
        'need(G["workspace_host"].encode() in open("/proc/1/cmdline", "rb").read(), "not there")',
        escapes_without=frozenset({"hidden-options", "drop-user"}),
    ),
    Probe(
        "every-command-line",
        "proc",
        """
        mine = str(os.getpid())
        found = False
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try: found |= pid != mine and G["secret"].encode() in open(f'/proc/{pid}/cmdline', 'rb').read()
            except OSError: pass
        need(found, 'no command line of the host')
        """,
        escapes_without=frozenset({"own-processes"}),
    ),
    Probe(
        "first-process-memory",
        "proc",
        "os.close(os.open('/proc/1/mem', os.O_RDWR))",
        logged="openat",
        escapes_without=frozenset({"call-filter", "sealed-first-process"}),
    ),
    *(
        Probe(
            f"first-process-memory-by-{name}",
            "proc",
            body,
            escapes_without=frozenset({"call-filter", "sealed-first-process"}),
        )
        for name, body in (
            ("relative-path", "os.chdir('/proc/1'); os.close(os.open('mem', os.O_RDWR))"),
            ("link", "os.symlink('/proc/1/mem', '/tmp/link'); os.close(os.open('/tmp/link', os.O_RDWR))"),
            ("thread", "os.close(os.open('/proc/1/task/1/mem', os.O_RDWR))"),
        )
    ),
    Probe(
        "victim-memory",
        "proc",
        """os.close(os.open(f'/proc/{G["victim"]}/mem', os.O_RDONLY))""",
        escapes_without=ROOT | {"own-processes"},
    ),
    Probe(
        "kernel-addresses",
        "proc",
        """
        lines = [open('/proc/kallsyms').readline() for _ in range(1)]
        need(int(lines[0].split()[0], 16), 'addresses are zero')
        """,
        escapes_without=ROOT,
    ),
    Probe(
        "physical-addresses",
        "proc",
        """
        data = bytearray(b'x' * 4096)
        at = ctypes.addressof(ctypes.c_char.from_buffer(data))
        with open('/proc/self/pagemap', 'rb', buffering=0) as file:
            file.seek(at // 4096 * 8)
            entry, = struct.unpack('=Q', file.read(8))
        need(entry & ((1 << 55) - 1), 'frame numbers are zero')
        """,
        escapes_without=ROOT,
    ),
    Probe(
        "oom-score-of-others",
        "proc",
        """os.close(os.open(f'/proc/{G["victim"]}/oom_score_adj', os.O_WRONLY))""",
        escapes_without=ROOT | {"own-processes"},
    ),
    Probe(
        "own-oom-score-below-zero",
        "proc",
        "os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1000')",
        unshown="lowering it needs a capability that a host in a container lacks",
    ),
    Probe(
        "rewrite-user-map",
        "proc",
        "os.write(os.open('/proc/self/uid_map', os.O_WRONLY), b'0 0 1')",
        unshown="the map of the host itself cannot be written again either",
    ),
    Probe(
        "rewrite-group-map",
        "proc",
        """
        os.write(os.open('/proc/self/gid_map', os.O_WRONLY), b'0 0 1')
        """,
        unshown="the map of the host itself cannot be written again either",
    ),
    Probe(
        "host-control-group-path",
        "proc",
        "need('gametape' in open('/proc/self/cgroup').read(), 'not shown')",
        escapes_without=frozenset({"own-cgroup-view"}),
        unprivileged=False,
    ),
    Probe(
        "host-network-tables",
        "proc",
        """
        need(G["abstract"] in open('/proc/net/unix').read(), 'not shown')
        """,
        escapes_without=frozenset({"own-network"}),
    ),
]

_ENVIRONMENT = [
    Probe(
        "own-environment",
        "environment",
        'need(G["secret"] in os.environ.values(), "not there")',
        escapes_without=frozenset({"empty-environment"}),
    ),
    Probe(
        "any-variable-of-the-host",
        "environment",
        """
        known = {'PATH', 'HOME', 'USER', 'LANG', 'TMPDIR', 'PWD', 'LC_CTYPE'}
        need(set(os.environ) - known, 'nothing but its own')
        """,
        escapes_without=frozenset({"empty-environment"}),
    ),
    Probe(
        "environment-on-the-stack",
        "environment",
        """
        for line in open('/proc/self/maps'):
            if '[stack]' in line:
                low, high = (int(word, 16) for word in line.split()[0].split('-'))
                with open('/proc/self/mem', 'rb', buffering=0) as file:
                    file.seek(low)
                    stack = file.read(high - low)
        secret = G["secret"].encode()
        need(b'GT_PLANTED=' + secret in stack, 'not there')
        """,
        escapes_without=frozenset({"empty-environment"}),
    ),
]

_DESCRIPTORS = [
    Probe(
        "more-than-three-descriptors",
        "descriptors",
        """
        there = [f'/proc/self/fd/{name}' for name in os.listdir('/proc/self/fd') if int(name) > 2]
        need(any(map(os.path.exists, there)), 'only 0, 1 and 2')
        """,
        bare=True,
    ),
    Probe(
        "planted-descriptor",
        "descriptors",
        """
        os.fstat(G["planted_fd"])
        """,
        bare=True,
    ),
    Probe(
        "every-number",
        "descriptors",
        """
        found = []
        for number in range(3, 1024):
            try: found.append(os.fstat(number))
            except OSError: pass
        need(found, 'all closed')
        """,
        bare=True,
    ),
    Probe(
        "output-pipe-reopened",
        "descriptors",
        """
        end = os.open('/proc/self/fd/1', os.O_RDONLY | os.O_NONBLOCK)
        need(os.read(end, 100), 'empty')
        """,
        unshown="the pipe is the command's own output: reading it back gives nothing of the host's",
    ),
    Probe(
        "host-input",
        "descriptors",
        "need(os.readlink('/proc/self/fd/0').startswith(('/dev/pts', '/dev/tty', 'pipe:')), 'a file of its own')",
        bare=True,
    ),
    Probe(
        "first-process-descriptors",
        "descriptors",
        """
        names = [os.readlink(f'/proc/1/fd/{n}') for n in os.listdir('/proc/1/fd') if int(n) > 2]
        need([name for name in names if name != 'anon_inode:[eventfd]'], 'none')
        """,
        unshown="bubblewrap keeps no descriptor in any variant",
    ),
]

PROBES = [*_WRITES, *_PROC, *_ENVIRONMENT, *_DESCRIPTORS]
