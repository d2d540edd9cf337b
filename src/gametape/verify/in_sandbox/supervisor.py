"""The trusted parent of a sandbox's test processes: takes a job from the host and supervises one child per step.

The supervisor never imports the files it wrote, cannot be inspected by its children (not dumpable), trusts nothing they
report, and forwards their output to the host together with the wait status of each, which comes from the kernel.

It does not read the request of a step: the child reads that itself from the host's socket, while it is still trusted.
So no child finds in its memory what another one was given.
"""

import ctypes
import gc
import itertools
import json
import os
import random
import resource
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from . import frames, workspace_files

_LIMITS = [name for name in dir(resource) if name.startswith("RLIMIT_")]


class InheritedState:
    """The process state that children inherit (limits, priority, processors, directory), and what of it changed."""

    def __init__(self) -> None:
        self._initial = _inherited_state()

    def changed(self) -> str | None:
        now = _inherited_state()
        changed = [name for name, value in self._initial.items() if now[name] != value]
        return ", ".join(changed) or None


def _inherited_state() -> dict[str, object]:
    limits = {name: resource.getrlimit(getattr(resource, name)) for name in _LIMITS}
    return {
        **limits,
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "processors": frozenset(os.sched_getaffinity(0)),
        "scheduling": (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority),
        "directory": os.getcwd(),
    }


_PR_SET_DUMPABLE = 4
_MOST_OUTPUT = 16 << 20
_CHUNK = 1 << 16
_END = -1
_TICK_MS = 100
_CLOCK_FACTOR = 4
_AFTER_TIMEOUT = 0.25
"""The factor on time limits after a child ran out of time: code that hangs in one file hangs in the next."""
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

Body = Callable[[dict[str, Any], dict[str, Any], int, int | None], None]
"""What a child runs: with the job, its step, the descriptor for its output, and its connection."""


class ChildSupervisor:
    """Create one when everything trusted is imported: it tells the host that it is ready."""

    def __init__(self) -> None:
        self._host = socket.socket(fileno=os.dup(0))
        self._connections: list[int] = []
        self._had_timeout = False
        self._state = InheritedState()
        settle()
        self._send({"ready": True})

    def work(self, body: Body, serves: bool = False) -> None:
        """Do the one job: a child for every step, one after the other. With `serves`, a child is ended when the other
        side closes its connection."""
        try:
            job = json.loads(frames.read_frame(self._host.recv))
            files = workspace_files.WorkspaceFiles(job["files"], frames.read_frame(self._host.recv))
        except frames.FrameError:
            return  # the host closed the sandbox without a job
        if count := job["connections"]:
            _, self._connections, _, _ = socket.recv_fds(self._host, 1, count)
        for number in itertools.count():
            self._send({"next": number})
            step = {"number": number, **json.loads(frames.read_frame(self._host.recv))}
            if "over" in step:
                break
            connection = self._connections[0] if self._connections else None
            status, late = self._run(job, step, body, files, connection, serves)
            if connection is not None:
                os.close(self._connections.pop(0))
            rewritten = files.restore()
            workspace_files.clear_scratch()
            tampered = self._state.changed()
            answer = {"status": status, "late": late, "rewritten": rewritten, "tampered": tampered}
            self._send({"step": number, **answer})
            if tampered:
                break  # the next child would inherit the change, and could read it as a message
        self._send({"done": True})

    def _send(self, document: dict[str, Any]) -> None:
        self._host.sendall(frames.pack_json(document))

    def _run(
        self,
        job: dict[str, Any],
        step: dict[str, Any],
        body: Body,
        files: workspace_files.WorkspaceFiles,
        connection: int | None,
        serves: bool,
    ) -> tuple[int, bool]:
        """Run one child and end all its processes: its wait status, and whether it timed out."""
        ours, theirs = os.pipe()
        waits, starts = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                request = json.loads(frames.read_frame(self._host.recv))
                _lay(request)
                self._host.close()
                for descriptor in (ours, starts, *(other for other in self._connections if other != connection)):
                    os.close(descriptor)
                os.write(theirs, b"\n")
                os.read(waits, 1)
                os.close(waits)
                become_child()
                body(job, request, theirs, connection)
            finally:
                os._exit(70)
        os.close(theirs)
        os.close(waits)
        os.read(ours, 1)
        files.record_state()
        os.write(starts, b"\n")
        os.close(starts)
        os.set_blocking(ours, False)
        status, late = self._listen(pid, ours, step, connection if serves else None)
        os.close(ours)
        workspace_files.kill_other_processes()
        return status, late

    def _listen(self, pid: int, ours: int, step: dict[str, Any], hangs_up: int | None) -> tuple[int, bool]:
        """Forward the child's output until it ends or its time is up.

        The limit is processor time, since on a busy machine a process waits for its turn; by the clock it gets a
        multiple of that. Where a step sets `silence`, a child without output for that long has timed out.
        """
        most = step["seconds"] * (_AFTER_TIMEOUT if self._had_timeout else 1)
        last_output = time.monotonic()
        deadline = last_output + _CLOCK_FACTOR * most
        silence = step.get("silence", _CLOCK_FACTOR * most)
        process = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(ours, select.POLLIN)
        poll.register(process, select.POLLIN)
        if hangs_up is not None:
            poll.register(hangs_up, 0)  # only its end
        received, over, late = 0, False, False
        while not over and not late:
            ready = {descriptor for descriptor, _ in poll.poll(_TICK_MS)}
            over = process in ready or hangs_up in ready
            if ours in ready:
                forwarded = self._forward(ours, step["number"], until_empty=over)
                received += max(forwarded, 0)
                last_output = time.monotonic()
                if forwarded == _END:
                    poll.unregister(ours)
            now = time.monotonic()
            spent = now >= deadline or now - last_output >= silence or _processor_seconds(pid) >= most
            late = not over and (spent or received > _MOST_OUTPUT)
        self._had_timeout = self._had_timeout or late
        ended_by_us = process not in ready
        if ended_by_us:
            os.kill(pid, signal.SIGKILL)
        os.close(process)
        _, status = os.waitpid(pid, 0)
        return 0 if ended_by_us and not late else status, late

    def _forward(self, ours: int, number: int, until_empty: bool) -> int:
        """Send what is in the pipe now to the host: the number of bytes, or `_END`."""
        forwarded = 0
        while True:
            try:
                data = os.read(ours, _CHUNK)
            except BlockingIOError:
                return forwarded
            if not data:
                return _END
            self._host.sendall(frames.pack_json({"told": number}) + frames.pack(data))
            forwarded += len(data)
            if not until_empty:
                return forwarded


def _processor_seconds(pid: int) -> float:
    """Processor time of a child and of those of its own children that have ended."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / _TICKS_PER_SECOND


def settle() -> None:
    """Prepare to fork: no child may inspect this process, and what is in memory now is never collected."""
    _set_dumpable(False)
    gc.collect()
    gc.freeze()


def _lay(request: dict[str, Any]) -> None:
    """Write the files that only this child finds. Blank ones lie there empty: the child has their texts in memory."""
    request["texts"] = request.pop("laid")
    for path, text in request["texts"].items():
        workspace_files.write(path, b"" if request.get("blank") else text.encode("utf-8", "surrogateescape"))


def become_child() -> None:
    """Give the child its own session and random seed, no terminal, and memory that it may inspect itself."""
    os.setsid()
    random.seed()
    _set_dumpable(True)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)
    gc.unfreeze()


def _set_dumpable(yes: bool) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, int(yes), 0, 0, 0)
