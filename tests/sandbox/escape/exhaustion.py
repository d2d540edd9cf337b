"""Taking more processes, time, output and descriptors than the limits grant. Bounded, but for two that never end."""

from typing import Any

from tests.sandbox.escape.probe import Probe
from tests.sandbox.escape.resources import bomb

_PROCESSES = {"processes": 16}
_CPU = {"cpu_seconds": 1, "wall_seconds": 600}

_PROCESS_BOMBS = [
    bomb(
        "fork-bomb",
        """
        children = 0
        try:
            for _ in range(200):
                if os.fork() == 0: time.sleep(20); os._exit(0)
                children += 1
        except BlockingIOError:
            time.sleep(5); raise
        """,
        "processes",
        _PROCESSES,
    ),
    bomb(
        "doubling-fork-bomb",
        """
        for _ in range(6):
            try: os.fork()
            except BlockingIOError: pass
        time.sleep(2)
        """,
        "processes",
        _PROCESSES,
    ),
    bomb(
        "thread-bomb",
        """
        import threading
        try:
            for _ in range(200): threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
        except RuntimeError:
            time.sleep(5); raise Blocked('no more threads')
        os._exit(0)
        """,
        "processes",
        _PROCESSES,
    ),
    Probe(
        "shell-fork-bomb",
        "resources",
        "",
        argv=("/bin/sh", "-c", "bomb() { bomb | bomb & }; bomb; sleep 20 # {nonce}"),
        killed_by="processes",
        limits={"processes": 32, "wall_seconds": 600},
        unshown="it has no bound: never run it in anything weaker",
    ),
]

_TIME_BOMBS = [
    bomb(
        "sleep-forever",
        "time.sleep(60)",
        "time",
        {"wall_seconds": 0.5},
        unshown="the clock is the supervisor's",
    ),
    bomb(
        "ignore-every-signal",
        """
        for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
            try: signal.signal(number, signal.SIG_IGN)
            except OSError: pass
        time.sleep(60)
        """,
        "time",
        {"wall_seconds": 0.5},
        unshown="the clock is the supervisor's",
    ),
    bomb(
        "daemon",
        """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(60)
            os._exit(0)
        raise Blocked('the command ends, its daemon must too')
        """,
        None,
        {},
        unshown="three layers end it: its process namespace, the keeper that adopts it, its control group",
    ),
    bomb("burn-cpu", "while time.process_time() < 2.5: pass", "cpu", _CPU),
    bomb(
        "burn-cpu-in-children",
        """
        for _ in range(6):
            if os.fork() == 0:
                while time.process_time() < 0.6: pass
                os._exit(0)
        for _ in range(6): os.wait()
        """,
        "cpu",
        _CPU,
    ),
    bomb(
        "burn-cpu-in-short-lives",
        """
        for _ in range(50):
            child = os.fork()
            if child == 0:
                end = time.process_time() + 0.05
                while time.process_time() < end: pass
                os._exit(0)
            os.waitpid(child, 0)
        """,
        "cpu",
        _CPU,
    ),
]


def _flood(name: str, stream: int, total: int, **more: Any) -> Probe:
    return bomb(name, f"for _ in range({total >> 16}): os.write({stream}, b'x' * 65536)", "output", {}, **more)


_FLOODS = [
    _flood("stdout-flood", 1, 8 << 20),
    _flood("stderr-flood", 2, 8 << 20),
    Probe(
        "yes-flood",
        "resources",
        "",
        argv=("/bin/sh", "-c", "yes {nonce} | head -c 268435456"),
        killed_by="output",
        unshown="stdout-flood is the same, and shown",
    ),
    Probe(
        "four-gigabyte-flood",
        "resources",
        "",
        argv=("/bin/sh", "-c", "yes {nonce} | head -c 4294967296"),
        killed_by="output",
        limits={"output_bytes": 1 << 28, "wall_seconds": 600},
        slow=True,
        unshown="the flood is longer than any cap a test should fill",
    ),
]

_COUNTED = [
    bomb(
        "descriptors",
        "held = [os.open('/dev/null', os.O_RDONLY) for _ in range(200)]",
        None,
        {"open_files": 64},
        escapes_without=frozenset({"resource-limits"}),
    ),
    bomb(
        "raise-a-limit",
        """
        import resource
        try: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
        except ValueError as error: raise Blocked(str(error))
        """,
        None,
        {"open_files": 64},
        escapes_without=frozenset({"resource-limits"}),
    ),
    bomb(
        "pipes",
        "held = [os.pipe() for _ in range(200)]",
        None,
        {"open_files": 64},
        escapes_without=frozenset({"resource-limits"}),
    ),
    bomb(
        "terminals",
        "held = [os.openpty() for _ in range(200)]",
        None,
        {"open_files": 64},
        escapes_without=frozenset({"resource-limits"}),
    ),
    bomb(
        "watches",
        "held = [libc.inotify_init() for _ in range(100)]\nneed(min(held) >= 0, 'no more')",
        None,
        {"open_files": 64},
    ),
    bomb(
        "flood-of-denied-calls",
        """
        while True:
            try: call("unshare", 0x10000000)
            except OSError: pass
        """,
        "policy",
        {},
        policy={"max_violations": 200},
        logged="unshare",
        unshown="it never ends by itself",
    ),
    bomb(
        "kill-at-the-first",
        'call("unshare", 0x10000000)\ntime.sleep(30)',
        "policy",
        {},
        policy={"on_violation": "kill"},
        logged="unshare",
        unshown="see namespaces/unshare-users",
    ),
]

PROBES = [*_PROCESS_BOMBS, *_TIME_BOMBS, *_FLOODS, *_COUNTED]
