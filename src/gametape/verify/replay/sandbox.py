"""Warm sandboxes for replays: the attempt's files, a process per session, and nothing of the tests.

A sandbox serves many verdicts, one after the other. After each session its processes are killed and its files restored;
it is thrown away after a time-out or a changed limit, when it ended by itself, and after a verdict with refused system
calls.
"""

import contextlib
import functools
import re
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.sandbox.keeper_client import SandboxError
from gametape.sandbox.pool import WarmPool
from gametape.sandbox.result import ExecResult, ResourceUsage
from gametape.verify import jobs
from gametape.verify.in_sandbox import frames
from gametape.verify.machine_load import slowdown
from gametape.verify.replay.connection import FrameConnection
from gametape.verify.runner import JobReport, ProcessReport, TestProcess, Zygote, ZygoteJob, runner_policy
from gametape.verify.verifier_run import VerifierRun, parse_report

_REPORT_SECONDS = 4.0
_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+([\w.]+(?:[ \t]*,[ \t]*[\w.]+)*)", re.MULTILINE)
_NOT_AHEAD = frozenset({"antigravity", "idlelib", "this", "turtle", "turtledemo", "tkinter", "test", "lib2to3"})
"""Modules that do something when they are imported, or that no product needs."""
_PROCESS = TestProcess(name="replay", path="", tests=(), laid={})
_NOTHING_REPORTED = ExecResult(
    exit_code=0,
    signal=None,
    stdout="",
    stderr="",
    usage=ResourceUsage(wall_seconds=0.0),
    killed_by=None,
    violations=(),
    backend="",
    assurance="",
    held_by={},
    policy_hash="",
)
"""Stands for the result of a sandbox that goes on."""
_MOST_IDLE = 8
"""Sandboxes of one kind that wait to be used again."""
Role = Literal["attempt", "reference"]


class ReplaySandbox:
    """One sandbox. `open` begins a session; a session must be closed before the next one is opened."""

    def __init__(self, interpreter: Path | None, memory_mb: int) -> None:
        self._zygote = Zygote(runner_policy(interpreter, memory_mb), interpreter, "replay_supervisor")
        self._tree = SourceTree()
        self._preloaded: frozenset[str] = frozenset()
        self.usable = True
        """Whether another session may be opened."""
        self.violations = 0
        """How many system calls were refused in it."""

    def open(self, job: ZygoteJob, modules: frozenset[str] = frozenset()) -> "ReplaySession":
        """Begin a session over the files of a job. `modules` of the standard library are imported ahead.

        Raises SandboxError if the sandbox has ended.
        """
        ours, theirs = socket.socketpair()
        try:
            self._zygote.begin(_REPORT_SECONDS * slowdown())
            self._preload(modules)
            self._load(job.tree)
            settings = {"import_roots": job.import_roots, "source_paths": job.source_paths}
            self._zygote.send(frames.pack_json(settings))
            self._zygote.send_socket(theirs)
        except OSError as error:
            self.usable = False
            ours.close()
            theirs.close()
            raise SandboxError(f"the replay sandbox has ended: {error}") from error
        return ReplaySession(self, FrameConnection(ours))

    def close(self) -> None:
        self.usable = False
        self._zygote.close()

    def _load(self, tree: SourceTree) -> None:
        known = self._tree
        changed = [
            path
            for path, content in tree.files.items()
            if known.files.get(path) != content or (path in known.executable) != (path in tree.executable)
        ]
        removed = [path for path in known if path not in tree]
        if changed or removed:
            listing = [(path, len(tree.files[path]), path in tree.executable) for path in changed]
            message = frames.pack_json({"files": listing, "removed": removed})
            self._zygote.send(message + frames.pack(b"".join(tree.files[path] for path in changed)))
        self._tree = tree

    def _preload(self, modules: frozenset[str]) -> None:
        wanted = modules - self._preloaded
        if wanted:
            self._zygote.send(frames.pack_json({"modules": sorted(wanted)}))
            self._preloaded |= wanted

    def end_session(self, hung: bool, left: bool) -> VerifierRun:
        """End a session: what its processes did, as far as the sandbox knows. For `ReplaySession`."""
        report = ProcessReport(_PROCESS.name)
        done = False
        try:
            self._zygote.begin(_REPORT_SECONDS * slowdown())
            self._zygote.send(frames.pack_json({"left": left}))
            answer = self._zygote.receive()
            report.output += self._zygote.receive_bytes()
            report.status, report.tampered = answer["status"], answer["tampered"]
            done = True
        except (OSError, ValueError, KeyError, frames.FrameError):
            pass  # the report below says that there is none
        violations = self._zygote.violations(self.violations)
        self.violations += len(violations)
        result = _NOTHING_REPORTED
        if hung or report.tampered or not done:
            self.close()
            result = self._zygote.result()
        job_report = JobReport({_PROCESS.name: report}, result, 0.0, timed_out=hung, done=done)
        return replace(parse_report(job_report, [_PROCESS]), violations=violations)


class ReplaySession:
    """A process in a replay sandbox, and the connection to it. It is hostile from its first answer on."""

    def __init__(self, sandbox: ReplaySandbox, connection: FrameConnection) -> None:
        self.sandbox = sandbox
        self.connection = connection

    def close(self, hung: bool = False, left: bool = False) -> VerifierRun:
        """End every process of it. Returns events and violations, without outcomes; `hung` says that it gave no answer
        in time, `left` that it closed the connection."""
        run = self.sandbox.end_session(hung, left)
        self.connection.close()
        return run


class ReplaySandboxes:
    """Replay sandboxes by interpreter, memory and role; those that are given back are used again. Safe to use from many
    threads. What an attempt ran in never answers for the reference.

    `spare` sandboxes of each kind are started ahead.
    """

    def __init__(self, spare: int = 0) -> None:
        self._spare = spare
        self._idle: dict[_Kind, list[ReplaySandbox]] = {}
        self._starting: dict[_Kind, WarmPool[ReplaySandbox]] = {}
        self._lock = threading.Lock()
        self._closed = False

    @contextlib.contextmanager
    def borrow(self, loaded_task: LoadedTask, role: Role = "attempt", new: bool = False) -> Iterator[ReplaySandbox]:
        """A sandbox for one verdict; with `new`, one that nothing has run in."""
        kind = loaded_task.interpreter, jobs.memory_mb(loaded_task), role
        sandbox = (None if new else self._take_idle(kind)) or self._start(kind)
        try:
            yield sandbox
        except BaseException:
            sandbox.close()
            raise
        self._give_back(kind, sandbox)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle = [sandbox for sandboxes in self._idle.values() for sandbox in sandboxes]
            pools = [*self._starting.values()]
            self._idle.clear()
            self._starting.clear()
        for pool in pools:
            pool.close()
        for sandbox in idle:
            sandbox.close()

    def __enter__(self) -> "ReplaySandboxes":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take_idle(self, kind: "_Kind") -> ReplaySandbox | None:
        with self._lock:
            idle = self._idle.get(kind)
            return idle.pop() if idle else None

    def _start(self, kind: "_Kind") -> ReplaySandbox:
        interpreter, memory_mb, _ = kind
        make = functools.partial(ReplaySandbox, interpreter, memory_mb)
        if not self._spare:
            return make()
        with self._lock:
            if kind not in self._starting:
                self._starting[kind] = WarmPool(make, self._spare)
            pool = self._starting[kind]
        return pool.take()

    def _give_back(self, kind: "_Kind", sandbox: ReplaySandbox) -> None:
        with self._lock:
            idle = self._idle.setdefault(kind, [])
            if sandbox.usable and not sandbox.violations and not self._closed and len(idle) < _MOST_IDLE:
                idle.append(sandbox)
                return
        sandbox.close()


_Kind = tuple[Path | None, int, Role]


@functools.lru_cache(maxsize=64)
def library_modules(tree: SourceTree) -> frozenset[str]:
    """The modules of the standard library that some sources import by name. Take trusted sources."""
    text = "\n".join(tree.text(path) for path in tree if path.endswith(".py"))
    names = {name for match in _IMPORT.finditer(text) for name in match[1].replace(" ", "").split(",")}
    return frozenset(name for name in names if name.partition(".")[0] in sys.stdlib_module_names - _NOT_AHEAD)
