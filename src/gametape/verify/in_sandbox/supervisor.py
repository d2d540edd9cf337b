"""What both trusted first programs of a sandbox have in common: a job from the host, and children that are watched.

Such a program never imports what it laid, cannot be looked into by its children (not dumpable), believes nothing they
say, and passes their words on to the host together with how each of them ended, which is the kernel's word.

It does not even read what a step is about: the child reads that itself, from the host's socket, while it is still
trusted. So no child finds in its memory what another one was given.
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
    """How we stand with the kernel now; later, what of that was changed."""

    def __init__(self) -> None:
        self._at_first = _inherited_state()

    def changed(self) -> str | None:
        now = _inherited_state()
        found = [name for name, value in self._at_first.items() if now[name] != value]
        return ", ".join(found) or None


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
_MOST_TOLD = 16 << 20
_CHUNK = 1 << 16
_END = -1
_TICK_MS = 100
_PATIENCE = 4
_AFTER_A_LATE_ONE = 0.25
"""What hangs in one file hangs in the next."""
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

Body = Callable[[dict[str, Any], dict[str, Any], int, int | None], None]
"""What a child does: with the job, its step, the descriptor to tell things on, and its connection."""


class ChildSupervisor:
    """Make one when everything trusted is imported: it says that it is ready."""

    def __init__(self) -> None:
        self._host = socket.socket(fileno=os.dup(0))
        self._connections: list[int] = []
        self._was_late = False
        self._standing = InheritedState()
        _be_dumpable(False)
        gc.collect()
        gc.freeze()
        self._say({"ready": True})

    def work(self, body: Body, serves: bool = False) -> None:
        """Do the one job: a child for every step, one after the other. Children that `serve` are over when the other
        side of their connection closes."""
        try:
            job = json.loads(frames.read_frame(self._host.recv))
            ground = workspace_files.WorkspaceFiles(job["files"], frames.read_frame(self._host.recv))
        except frames.FrameError:
            return  # nobody needed this one
        if count := job["connections"]:
            _, self._connections, _, _ = socket.recv_fds(self._host, 1, count)
        for number in itertools.count():
            self._say({"next": number})
            step = {"number": number, **json.loads(frames.read_frame(self._host.recv))}
            if "over" in step:
                break
            connection = self._connections[0] if self._connections else None
            status, late = self._run(job, step, body, ground, connection, serves)
            if connection is not None:
                os.close(self._connections.pop(0))
            rewritten = ground.restore()
            workspace_files.clear_scratch()
            tampered = self._standing.changed()
            answer = {"status": status, "late": late, "rewritten": rewritten, "tampered": tampered}
            self._say({"step": number, **answer})
            if tampered:
                break  # whatever comes next would inherit it, and could read it as a message
        self._say({"done": True})

    def _say(self, document: dict[str, Any]) -> None:
        self._host.sendall(frames.pack_json(document))

    def _run(
        self,
        job: dict[str, Any],
        step: dict[str, Any],
        body: Body,
        ground: workspace_files.WorkspaceFiles,
        connection: int | None,
        serves: bool,
    ) -> tuple[int, bool]:
        """One child, and the end of all it leaves behind: its wait status, and whether it was late."""
        ours, theirs = os.pipe()
        waits, starts = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                given = json.loads(frames.read_frame(self._host.recv))
                for path, text in given.pop("laid").items():
                    workspace_files.write(path, text.encode("utf-8", "surrogateescape"))
                self._host.close()
                for descriptor in (ours, starts, *(one for one in self._connections if one != connection)):
                    os.close(descriptor)
                os.write(theirs, b"\n")
                os.read(waits, 1)
                os.close(waits)
                _become_child()
                body(job, given, theirs, connection)
            finally:
                os._exit(70)
        os.close(theirs)
        os.close(waits)
        os.read(ours, 1)
        ground.record_state()
        os.write(starts, b"\n")
        os.close(starts)
        os.set_blocking(ours, False)
        status, late = self._listen(pid, ours, step, connection if serves else None)
        os.close(ours)
        workspace_files.kill_other_processes()
        return status, late

    def _listen(self, pid: int, ours: int, step: dict[str, Any], hangs_up: int | None) -> tuple[int, bool]:
        """Pass on what the child tells until it ends or its time is up.

        On a busy machine a process waits for its turn, so what it may take is processor time; by the clock it gets a
        multiple of that, and loses it when it does nothing with it. Where a step says how long it may tell nothing,
        it is late after that.
        """
        most = step["seconds"] * (_AFTER_A_LATE_ONE if self._was_late else 1)
        heard = time.monotonic()
        deadline = heard + _PATIENCE * most
        silence = step.get("silence", _PATIENCE * most)
        process = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(ours, select.POLLIN)
        poll.register(process, select.POLLIN)
        if hangs_up is not None:
            poll.register(hangs_up, 0)  # only its end
        told, over, late = 0, False, False
        while not over and not late:
            ready = {descriptor for descriptor, _ in poll.poll(_TICK_MS)}
            over = process in ready or hangs_up in ready
            if ours in ready:
                passed = self._pass_on(ours, step["number"], until_empty=over)
                told += max(passed, 0)
                heard = time.monotonic()
                if passed == _END:
                    poll.unregister(ours)
            now = time.monotonic()
            spent = now >= deadline or now - heard >= silence or _processor_seconds(pid) >= most
            late = not over and (spent or told > _MOST_TOLD)
        self._was_late = self._was_late or late
        ended_by_us = process not in ready
        if ended_by_us:
            os.kill(pid, signal.SIGKILL)
        os.close(process)
        _, status = os.waitpid(pid, 0)
        return 0 if ended_by_us and not late else status, late

    def _pass_on(self, ours: int, number: int, until_empty: bool) -> int:
        """What is in the pipe now, as it is: how much that was, or that this was the end."""
        passed = 0
        while True:
            try:
                data = os.read(ours, _CHUNK)
            except BlockingIOError:
                return passed
            if not data:
                return _END
            self._host.sendall(frames.pack_json({"told": number}) + frames.pack(data))
            passed += len(data)
            if not until_empty:
                return passed


def _processor_seconds(pid: int) -> float:
    """What a child has used so far, with those of its own children that have ended."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / _TICKS_PER_SECOND


def _become_child() -> None:
    """A session and chances of its own, no terminal, and memory that it may read itself again."""
    os.setsid()
    random.seed()
    _be_dumpable(True)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)
    gc.unfreeze()


def _be_dumpable(yes: bool) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, int(yes), 0, 0, 0)
