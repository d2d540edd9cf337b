"""A worker process with the code it serves, for tests of split mode."""

import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gametape.verify

VERIFY = Path(gametape.verify.__file__).parent
_SERVE = "import socket, sys; sys.path.insert(0, sys.argv[1]); from in_sandbox import worker; "
_SERVE += "worker.serve(socket.socket(fileno=int(sys.argv[2])))"


def write_code(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(textwrap.dedent(text))


@contextmanager
def serving() -> Iterator[socket.socket]:
    """The test's end of a socket with a worker at the other."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-I", "-B", "-c", _SERVE, str(VERIFY), str(theirs.fileno())]
    worker = subprocess.Popen(command, pass_fds=[theirs.fileno()])
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        try:
            worker.wait(5)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
