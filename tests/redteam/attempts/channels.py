"""What one test process leaves behind for the next: a probe that looks for it everywhere and says what it found."""

PROBE = r'''"""Limit how often something happens."""

import ctypes
import os
import socket
import time

_FILES = ("/dev/shm/home", "/tmp/home/home", "/tmp/x", "/dev/shm/x", "/tmp/home/x", "/workspace/x", "/tmp/home/home/x")
_PLACES = ("/workspace", "/tmp", "/tmp/home", "/dev/shm")
found = []
_libc = ctypes.CDLL(None)
for _path in _FILES:
    if os.path.exists(_path):
        found.append(f"file {_path}")
for _path in _PLACES:
    if oct(os.stat(_path).st_mode).endswith("0733"):
        found.append(f"mode {_path}")
    if "user.x" in os.listxattr(_path):
        found.append(f"attribute {_path}")
    if os.stat(_path).st_atime == 77:
        found.append(f"time {_path}")
for _name in ("shmget", "semget", "msgget"):
    _arguments = (4242, 0o600) if _name == "msgget" else (4242, 1, 0o600)
    if getattr(_libc, _name)(*_arguments) >= 0:
        found.append(_name)
try:
    socket.socket(socket.AF_UNIX).connect("\0left")
    found.append("a process")
except OSError:
    pass

for _path in _FILES:
    try:
        with open(_path, "w") as _file:
            _file.write("left")
    except OSError:
        pass
for _path in _PLACES:
    for _act in (
        lambda: os.setxattr(_path, "user.x", b"left"),
        lambda: os.chmod(_path, 0o733),
        lambda: os.utime(_path, (77, 77)),
    ):
        try:
            _act()
        except OSError:
            pass
for _name in ("shmget", "semget", "msgget"):
    _arguments = (4242, 0o1600) if _name == "msgget" else (4242, 1, 0o1600)
    getattr(_libc, _name)(*_arguments)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        _left = socket.socket(socket.AF_UNIX)
        _left.bind("\0left")
        _left.listen()
        time.sleep(30)
    os._exit(3)


def tell(*_):
    raise RuntimeError(f"found: {found}")


class Bucket:
    __init__ = tell


class Limiter:
    __init__ = tell


parse_rate = tell
'''
"""For the task `limiter`, whose visible tests are three files, so three processes in a row."""
