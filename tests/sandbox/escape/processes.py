"""Other processes: tracing, memory, descriptors, signals, terminals; and memory shared with the host."""

from tests.sandbox.escape.probe import ROOT, Probe

FILTER = frozenset({"call-filter"})
SEEN = frozenset({"own-processes"})

_CHILD = """
child = os.fork()
if child == 0:
    time.sleep(5)
    os._exit(0)
"""

_TRACING = [
    Probe(
        "attach-to-the-first-process",
        "tracing",
        'call("ptrace", 16, 1, 0, 0)',
        logged="ptrace",
        unshown="the first process forbids it by itself",
    ),
    Probe(
        "attach-to-a-child",
        "tracing",
        _CHILD + 'call("ptrace", 16, child, 0, 0)',
        logged="ptrace",
        escapes_without=FILTER,
    ),
    Probe("seize-self", "tracing", 'reach("ptrace", 0x4206, 99999, 0, 0)', logged="ptrace", escapes_without=FILTER),
    Probe("be-traced", "tracing", 'call("ptrace", 0, 0, 0, 0)', logged="ptrace", escapes_without=FILTER),
    *(
        Probe(
            f"memory-of-others-{name}",
            "tracing",
            f"""
            data = ctypes.create_string_buffer(8)
            vector = struct.pack('=QQ', ctypes.addressof(data), 8)
            call("process_vm_{name}", os.getpid(), vector, 1, vector, 1, 0)
            """,
            logged=f"process_vm_{name}",
            escapes_without=FILTER,
        )
        for name in ("readv", "writev")
    ),
    Probe(
        "compare", "tracing", 'call("kcmp", os.getpid(), os.getpid(), 0, 0, 1)', logged="kcmp", escapes_without=FILTER
    ),
    Probe(
        "take-a-descriptor",
        "tracing",
        'call("pidfd_getfd", os.pidfd_open(os.getpid()), 1, 0)',
        logged="pidfd_getfd",
        escapes_without=FILTER,
    ),
    Probe(
        "take-a-descriptor-of-the-victim",
        "tracing",
        """call("pidfd_getfd", os.pidfd_open(G["victim"]), 3, 0)""",
        escapes_without=ROOT | SEEN,
    ),
    Probe(
        "advise-others",
        "tracing",
        'reach("process_madvise", os.pidfd_open(os.getpid()), 0, 0, 4, 0)',
        logged="process_madvise",
        escapes_without=FILTER,
    ),
]

_SIGNALS = [
    Probe("signal-the-victim", "signals", 'os.kill(G["victim"], 0)', escapes_without=ROOT | SEEN),
    Probe("signal-the-launcher", "signals", 'os.kill(G["launcher"], 0)', escapes_without=ROOT | SEEN),
    Probe(
        "signal-a-thread-of-the-victim",
        "signals",
        """call("tgkill", G["victim"], G["victim"], 0)""",
        escapes_without=ROOT | SEEN,
    ),
    Probe(
        "queue-a-signal",
        "signals",
        """call("rt_sigqueueinfo", G["victim"], 0, struct.pack('=iii', 0, 0, -1) + bytes(116))""",
        escapes_without=ROOT | SEEN,
    ),
    Probe(
        "signal-by-descriptor",
        "signals",
        """signal.pidfd_send_signal(os.pidfd_open(G["victim"]), 0)""",
        escapes_without=ROOT | SEEN,
    ),
    Probe(
        "signal-everyone",
        "signals",
        """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.kill(-1, signal.SIGTERM)
        raise Blocked('only its own processes were there to hear it')
        """,
        unshown="without its own processes it would end the host's",
    ),
    Probe(
        "stop-the-first-process",
        "signals",
        """
        os.kill(1, signal.SIGSTOP); os.kill(1, signal.SIGKILL)
        time.sleep(0.1)
        raise Blocked('the first process does not hear its own')
        """,
        unshown="the kernel protects the first process of a namespace",
    ),
    Probe(
        "priority-of-the-victim",
        "signals",
        """os.setpriority(os.PRIO_PROCESS, G["victim"], 5)""",
        escapes_without=ROOT | SEEN,
        unshown="",
    ),
    Probe(
        "limits-of-the-victim",
        "signals",
        """
        import resource
        resource.prlimit(G["victim"], resource.RLIMIT_CORE)
        """,
        escapes_without=ROOT | SEEN,
    ),
    Probe(
        "raise-own-priority",
        "signals",
        "os.nice(-5)",
        escapes_without=ROOT,
    ),
    Probe(
        "push-a-keystroke",
        "terminals",
        """
        import fcntl
        lead, follow = os.openpty()
        fcntl.ioctl(follow, 0x5412, b'x')
        """,
        logged="ioctl",
        escapes_without=ROOT,
    ),
    Probe(
        "push-a-keystroke-with-high-bits",
        "terminals",
        """
        lead, follow = os.openpty()
        reach("ioctl", follow, (1 << 32) | 0x5412, b'x')
        """,
        logged="ioctl",
        escapes_without=ROOT,
    ),
    Probe(
        "paste-on-the-console",
        "terminals",
        """
        lead, follow = os.openpty()
        reach("ioctl", follow, 0x541C, b'\\x03')
        """,
        logged="ioctl",
        escapes_without=FILTER,
    ),
    Probe(
        "controlling-terminal",
        "terminals",
        "os.close(os.open('/dev/tty', os.O_RDWR))",
        unshown="the keeper has no terminal to hand on",
    ),
    Probe(
        "session-of-the-host",
        "terminals",
        "need(os.getsid(0) == 0, 'a session of its own')",
        escapes_without=frozenset({"new-session"}),
    ),
]

_SHARED = [
    Probe(
        "segment-by-key",
        "shared-memory",
        """
        libc.shmget.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]
        need(libc.shmget(G["shm_key"], 4096, 0) >= 0, 'no such segment')
        """,
        escapes_without=frozenset({"own-ipc"}),
    ),
    Probe(
        "segment-by-number",
        "shared-memory",
        """
        libc.shmat.restype = ctypes.c_void_p
        at = libc.shmat(G["shm_id"], None, 0)
        need(at not in (None, (1 << 64) - 1), 'no such segment')
        need(ctypes.string_at(at, 8) == G["secret"][:8].encode(), 'another segment')
        """,
        escapes_without=frozenset({"own-ipc"}),
    ),
    Probe(
        "segments-listed",
        "shared-memory",
        "need(len(open('/proc/sysvipc/shm').readlines()) > 1, 'none')",
        escapes_without=frozenset({"own-ipc"}),
    ),
    Probe(
        "posix-memory",
        "shared-memory",
        """open('/dev/shm/' + G["posix_shm"]).read()""",
        granted={"read_only": ("/dev/shm/{posix_shm}",)},
    ),
    Probe(
        "message-queue",
        "shared-memory",
        """
        queue = libc.mq_open(G["queue"].encode(), os.O_RDONLY)
        need(queue >= 0, 'no such queue')
        """,
        escapes_without=frozenset({"own-ipc"}),
    ),
    Probe(
        "memory-file-of-the-victim",
        "shared-memory",
        """open(f'/proc/{G["victim"]}/fd/3').read()""",
        escapes_without=ROOT | SEEN,
    ),
    Probe(
        "memory-file-made-executable-set-id",
        "shared-memory",
        """
        file = os.memfd_create(NONCE)
        os.fchmod(file, 0o4755)
        """,
        logged="fchmod",
        escapes_without=FILTER,
    ),
]

PROBES = [*_TRACING, *_SIGNALS, *_SHARED]
