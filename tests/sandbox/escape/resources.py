"""Taking more memory and space than the limits grant.

Every bomb is bounded, so that it harms nobody where a limit fails to hold.
"""

from typing import Any

from tests.sandbox.escape.probe import Probe

_MEMORY = {"memory_mb": 48, "disk_mb": 512}
_DISK = {"disk_mb": 8, "memory_mb": 512}


def bomb(name: str, body: str, killed_by: str | None, limits: dict[str, Any], **more: Any) -> Probe:
    shown = {"unshown", "escapes_without"} & set(more)
    more = {"bomb": not shown, **more}
    return Probe(name, "resources", body, killed_by=killed_by, limits={"wall_seconds": 600, **limits}, **more)


_MEMORY_BOMBS = [
    bomb("bytearray", "held = [bytearray(b'x' * (8 << 20)) for _ in range(40)]", "memory", _MEMORY),
    bomb(
        "anonymous-map",
        """
        held = mmap.mmap(-1, 320 << 20)
        for at in range(0, 320 << 20, 4096): held[at] = 1
        """,
        "memory",
        _MEMORY,
    ),
    bomb(
        "shared-map",
        """
        held = mmap.mmap(-1, 320 << 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
        for at in range(0, 320 << 20, 4096): held[at] = 1
        """,
        "memory",
        _MEMORY,
    ),
    bomb(
        "many-children",
        """
        children = []
        for _ in range(16):
            child = os.fork()
            if child == 0:
                held = bytearray(b'y' * (20 << 20)); time.sleep(1.5); os._exit(0)
            children.append(child)
        need(not any(os.waitpid(child, 0)[1] for child in children), 'a child was ended')
        """,
        "memory",
        _MEMORY,
    ),
    bomb(
        "memory-file",
        """
        file = os.memfd_create('x')
        for _ in range(320): os.write(file, b'z' * (1 << 20))
        time.sleep(1)
        """,
        "memory",
        _MEMORY,
        or_refused=True,
    ),
    bomb(
        "system-v-segment",
        """
        libc.shmat.restype = ctypes.c_void_p
        for _ in range(40):
            segment = libc.shmget(0, ctypes.c_size_t(8 << 20), 0o1600)
            need(segment >= 0, 'no such call')
            at = libc.shmat(segment, None, 0)
            ctypes.memset(ctypes.c_void_p(at), 1, 8 << 20)
            libc.shmdt(ctypes.c_void_p(at))
        time.sleep(1)
        """,
        "memory",
        _MEMORY,
        or_refused=True,
    ),
    bomb(
        "socket-buffers",
        """
        held = []
        for _ in range(400):
            pair = socket.socketpair(); held.append(pair); pair[0].setblocking(False)
            try:
                while True: pair[0].send(bytes(65536))
            except BlockingIOError: pass
        time.sleep(1)
        """,
        "memory",
        {"memory_mb": 24, "disk_mb": 512},
        unprivileged=False,
    ),
    bomb(
        "temporary-directory-as-memory",
        """
        with open('/tmp/x', 'wb', buffering=0) as file:
            for _ in range(320): file.write(bytes(1 << 20))
        """,
        "memory",
        _MEMORY,
        unprivileged=False,
    ),
    bomb(
        "shared-directory-as-memory",
        """
        with open('/dev/shm/x', 'wb', buffering=0) as file:
            for _ in range(320): file.write(bytes(1 << 20))
        """,
        "memory",
        _MEMORY,
        unprivileged=False,
    ),
]

_SPACE_BOMBS = [
    bomb(
        f"{where}-filled",
        f"""
        for number in range(40):
            with open(f'{path}/x{{number}}', 'wb', buffering=0) as file: file.write(bytes(1 << 20))
        time.sleep(0.2)
        """,
        "disk",
        _DISK,
    )
    for where, path in (("workspace", "/workspace"), ("temporary-directory", "/tmp"), ("shared-directory", "/dev/shm"))
] + [
    bomb(
        "one-large-file",
        """
        with open('/workspace/x', 'wb', buffering=0) as file:
            for _ in range(40): file.write(bytes(1 << 20))
        time.sleep(0.2)
        """,
        "disk",
        _DISK,
    ),
    bomb(
        "file-over-its-size",
        "os.truncate(os.open('/workspace/x', os.O_CREAT | os.O_RDWR), 9 << 20)",
        None,
        {"disk_mb": 64, "file_size_mb": 8},
        escapes_without=frozenset({"resource-limits"}),
    ),
    bomb(
        "holes-then-data",
        """
        file = os.open('/workspace/x', os.O_CREAT | os.O_RDWR)
        for number in range(300): os.pwrite(file, bytes(1 << 16), number << 18)
        time.sleep(0.2)
        """,
        "disk",
        {"disk_mb": 12, "file_size_mb": 512},
    ),
    bomb(
        "allocated-not-written",
        """
        for number in range(10):
            os.posix_fallocate(os.open(f'/workspace/x{number}', os.O_CREAT | os.O_RDWR), 0, 4 << 20)
        time.sleep(0.2)
        """,
        "disk",
        _DISK,
    ),
    bomb(
        "deleted-but-open",
        """
        held = []
        for number in range(10):
            file = os.open(f'/workspace/x{number}', os.O_CREAT | os.O_RDWR)
            os.unlink(f'/workspace/x{number}')
            for _ in range(4): os.write(file, bytes(1 << 20))
            held.append(file)
        time.sleep(1)
        """,
        "disk",
        _DISK,
    ),
    bomb(
        "nameless-files",
        """
        held = []
        for number in range(10):
            file = os.open('/workspace', os.O_TMPFILE | os.O_RDWR)
            for _ in range(4): os.write(file, bytes(1 << 20))
            held.append(file)
        time.sleep(1)
        """,
        "disk",
        _DISK,
    ),
    bomb(
        "in-a-closed-directory",
        """
        os.mkdir('/workspace/d')
        here = os.open('/workspace/d', os.O_RDONLY)
        os.chmod('/workspace/d', 0o300)
        for number in range(40):
            file = os.open(f'x{number}', os.O_CREAT | os.O_RDWR, dir_fd=here)
            os.write(file, bytes(1 << 20)); os.close(file)
        time.sleep(0.2)
        """,
        "disk",
        _DISK,
    ),
    bomb(
        "many-empty-files",
        """
        for number in range(8000): os.close(os.open(f'/workspace/{number}', os.O_CREAT | os.O_WRONLY))
        time.sleep(0.2)
        """,
        "disk",
        {"disk_mb": 4},
    ),
    bomb(
        "many-links",
        """
        for number in range(8000): os.symlink('x', f'/workspace/{number}')
        time.sleep(0.2)
        """,
        "disk",
        {"disk_mb": 4},
    ),
    bomb(
        "very-deep-directories",
        """
        os.chdir('/workspace')
        for number in range(3000):
            os.mkdir('d' * 64); os.chdir('d' * 64)
        time.sleep(0.2)
        """,
        "disk",
        {"disk_mb": 4},
    ),
]

PROBES = [*_MEMORY_BOMBS, *_SPACE_BOMBS]
