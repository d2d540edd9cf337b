"""The first program of a replay sandbox: it serves one session after the other, each in a process of its own.

The host sends the files and a socket per session; the child answers the requests that come over that socket, and no
request says to which test it belongs. When the host closes a session, every process in the sandbox is killed, the files
are restored, and the scratch directories are emptied, so that the next session finds nothing of this one; the files of
the attempts lie in memory that no child gets, so that none finds there what another one wrote. There is no
pytest here, no test and no expected value.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import socket
import sys
from typing import Any

from . import audit_hook, frames, workspace_files
from .supervisor import InheritedState, become_child, settle
from .worker_zygote import serve_connection

_MOST_OUTPUT = 1 << 20
_CHUNK = 1 << 16
_LEAVE_MS = 300


def main() -> None:
    with contextlib.suppress(frames.FrameError):
        ReplaySupervisor().work()


class ReplaySupervisor:
    """Create one when everything trusted is imported: it tells the host that it is ready."""

    def __init__(self) -> None:
        self._host = socket.socket(fileno=os.dup(0))
        self._files = workspace_files.WorkspaceFiles([], b"")
        self._state = InheritedState()
        audit_hook.compile_patterns()
        settle()
        self._send({"ready": True})

    def work(self) -> None:
        """Carry out the host's messages until it closes the sandbox."""
        while True:
            message = self._receive()
            if "modules" in message:
                _preload(message["modules"])
                settle()
            elif "files" in message:
                self._files.change(message["files"], frames.read_frame_apart(self._host), message["removed"])
            else:
                self._serve(message)

    def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(frames.read_frame(self._host.recv))
        return message

    def _send(self, document: dict[str, Any], *bodies: bytes) -> None:
        self._host.sendall(frames.pack_json(document) + b"".join(map(frames.pack, bodies)))

    def _serve(self, job: dict[str, Any]) -> None:
        """One session: the child answers until the host closes the session; then clean up and report."""
        _, (connection,), _, _ = socket.recv_fds(self._host, 1, 1)
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                self._host.close()
                os.close(ours)
                become_child()
                gc.freeze()  # a collection would copy every page of the parent
                serve_connection(job, theirs, connection)
            finally:
                os._exit(70)
        os.close(theirs)
        os.close(connection)
        output, status = self._listen(pid, ours)
        os.close(ours)
        workspace_files.kill_other_processes()
        changed = self._files.restore()
        workspace_files.clear_scratch()
        self._send({"status": status, "rewritten": changed, "tampered": self._state.changed()}, output)

    def _listen(self, pid: int, ours: int) -> tuple[bytes, int | None]:
        """Keep the child's reports, up to a limit, until the host closes the session. Returns them and the wait status
        of a child that ended before that."""
        os.set_blocking(ours, False)
        process = os.pidfd_open(pid)
        poll = select.poll()
        for descriptor in (ours, process, self._host.fileno()):
            poll.register(descriptor, select.POLLIN)
        output = bytearray()
        status: int | None = None
        closed, more, left = False, True, False
        while not closed:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._host.fileno() in ready:
                left = self._receive()["left"]
                closed = True
            if more and (ours in ready or closed):
                with contextlib.suppress(BlockingIOError):
                    data = os.read(ours, _CHUNK)
                    output += data[: _MOST_OUTPUT - len(output)]
                    more = bool(data)
                    if not more:
                        poll.unregister(ours)
            if process in ready:
                poll.unregister(process)
                status = os.waitpid(pid, 0)[1]
        if left and status is None and _ends(process):
            status = os.waitpid(pid, 0)[1]
        os.close(process)
        return bytes(output), status


def _ends(process: int) -> bool:
    """Whether a process that has closed its connection ends at once: the kernel closes files before it says so."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(_LEAVE_MS))


def _preload(modules: list[str]) -> None:
    """Import modules of the standard library that the code will need, so that no child has to."""
    for name in modules:
        if name.partition(".")[0] in sys.stdlib_module_names:
            with contextlib.suppress(Exception):
                importlib.import_module(name)


if __name__ == "__main__":
    main()
