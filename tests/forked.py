"""Commands in processes of their own that begin with their imports done, because those cost more than most commands do.

A server imports what it is told to, once in a test run, and forks for each command: the directory, the environment, the
arguments, the exit code and what happens at the end are those of a fresh interpreter. Where the imports themselves or a
signal matter, a test starts an interpreter of its own.
"""

import atexit
import contextlib
import functools
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SECONDS = 900
"""After which a command hangs, on however slow a machine: `HANG` of `tests/patience.py`."""


class ForkServer:
    """`entry` is `module:function`, called without arguments; what it returns is the exit code."""

    def __init__(self, entry: str, *modules: str) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-P", __file__, str(theirs.fileno()), entry, *modules]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)

    def run(
        self, argv: list[str], cwd: Path | str | None = None, env: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """As `subprocess.run` with captured text."""
        order = {"argv": argv, "cwd": str(cwd or os.getcwd()), "env": dict(os.environ if env is None else env)}
        ended, theirs = os.pipe()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as ask:
            ask.write(json.dumps(order).encode())
            ask.seek(0)
            socket.send_fds(self._socket, [b"run"], [ask.fileno(), out.fileno(), err.fileno(), theirs])
            os.close(theirs)
            with os.fdopen(ended) as answers:
                pid = int(answers.readline())
                if not select.select([answers], [], [], SECONDS)[0]:
                    os.kill(pid, signal.SIGKILL)
                    raise subprocess.TimeoutExpired(argv, SECONDS)
                code = int(answers.readline())
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(argv, code, out.read().decode(), err.read().decode())


@functools.cache
def fork_server(entry: str, *modules: str) -> ForkServer:
    """The one of this test run. It ends when this process does, however that happens."""
    return ForkServer(entry, *modules)


def _serve(number: str, entry: str, *modules: str) -> None:
    requests = socket.socket(fileno=int(number))
    module, _, function = entry.partition(":")
    for name in (module, *modules):
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody has to wait for those who wait
    while True:
        _, descriptors, _, _ = socket.recv_fds(requests, 16, 4)
        if not descriptors:
            return
        if os.fork() == 0:
            requests.close()
            if _is_the_command(*descriptors):
                _end(_code(getattr(sys.modules[module], function)))
            os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)


def _is_the_command(ask: int, out: int, err: int, ended: int) -> bool:
    """Forks: one becomes the command, the other waits for it and tells how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid:
        os.write(ended, f"{pid}\n".encode())
        os.write(ended, f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n".encode())
        return False
    with os.fdopen(ask) as file:
        order = json.load(file)
    os.dup2(out, 1)
    os.dup2(err, 2)
    for descriptor in (out, err, ended):
        os.close(descriptor)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    sys.stdout.reconfigure(write_through=bool(os.environ.get("PYTHONUNBUFFERED")))  # type: ignore[union-attr]
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.argv = order["argv"]
    return True


def _code(command: Any) -> int:
    """The exit code that an interpreter makes of what the command returns or raises."""
    try:
        code = command()
    except SystemExit as error:
        code = error.code
    except BaseException:
        traceback.print_exc()
        return 1
    if code is None or isinstance(code, int):
        return int(code or 0)
    print(code, file=sys.stderr)
    return 1


def _end(code: int) -> None:
    """As an interpreter ends, but without taking the imported modules apart, which would take longest of all."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
