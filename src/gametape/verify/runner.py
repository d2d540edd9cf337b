"""The host's side of a zygote: a warm sandbox that runs one job of test processes and is thrown away.

The result has a `ProcessReport` per test process: its output, which is hostile, and its wait status, which comes from
the kernel. A `ZygotePool` keeps zygotes ready.
"""

import functools
import json
import socket
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gametape.core.errors import BadInput
from gametape.core.task import SplitSurface
from gametape.record.source_tree import SourceTree
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.interactive import InteractiveProcess, open_interactive
from gametape.sandbox.keeper_client import SandboxError
from gametape.sandbox.policy import SandboxLimits, SandboxPolicy
from gametape.sandbox.pool import WarmPool
from gametape.sandbox.result import ExecResult, PolicyViolation
from gametape.verify.in_sandbox import frames
from gametape.verify.in_sandbox.case_digest import neutral_case_id
from gametape.verify.interpreter import hidden_packages, installed_pytest_plugins, interpreter_prefixes

ZygoteProgram = Literal["zygote", "worker_zygote", "warm_runner", "replay_supervisor"]
"""A module of `in_sandbox` that is the first program of a sandbox."""
IN_SANDBOX = Path(__file__).resolve().parent / "in_sandbox"
_START = "import sys; sys.path.insert(0, sys.argv[1]); from in_sandbox.{module} import main; main()"
_FLAGS = ("-I", "-B", "--check-hash-based-pycs", "always")
_OUTLIVE_PROCESSES = ("shmget", "msgget", "semget", "mq_open")
"""System calls whose results outlive the process, so that a later process could read them."""
_DAY_SECONDS = 24 * 3600.0
_START_SECONDS = 60.0
_MOST_OUTPUT = 256 << 20
_CALL_SECONDS, _AFTER_TIMEOUT = 12.0, 0.25
"""Seconds that one call over the wire may take in split mode, and the factor after a call that took too long."""


@dataclass(frozen=True)
class TestProcess:
    """One test process: a test file, and which of its tests to run."""

    __test__ = False

    name: str
    path: str
    tests: tuple[str, ...]
    laid: dict[str, str]
    """Test files that only this process finds: text, undecodable bytes as surrogates."""
    shuffle: int | None = None
    messages: bool = True
    """Whether the messages of its tests are kept."""
    trace: tuple[str, ...] = ()
    """Files whose covered lines are reported."""
    blank: bool = False
    """Whether the text of the tests is never on the disk."""
    recorded: bool = False
    """Whether what crosses in split mode is recorded."""
    seconds: float = 60.0
    """Processor time; by the clock it may take a few times as long."""
    key: bytes = b""
    """With a key, the ids of parametrised cases are digests inside the process."""

    def request(self, after_timeout: bool) -> dict[str, object]:
        """What the process itself is sent."""
        names = ("path", "laid", "shuffle", "trace", "blank", "recorded")
        seconds = _CALL_SECONDS * (_AFTER_TIMEOUT if after_timeout else 1)
        inside = {"tests": sorted(self.ids_inside), "key": self.key.hex()}
        return {**{name: getattr(self, name) for name in names}, **inside, "call_seconds": seconds}

    @functools.cached_property
    def ids_inside(self) -> dict[str, str]:
        """The tests by the ids that they have inside the process."""
        return {self._id_inside(test): test for test in self.tests}

    def _id_inside(self, test: str) -> str:
        file, _, name = test.partition("::")
        function, bracket, case = name.partition("[")
        if not self.key or not bracket:
            return test
        return f"{file}::{function}[{neutral_case_id(self.key, case.removesuffix(']'))}]"


@dataclass(frozen=True)
class ZygoteJob:
    """The files and settings of a zygote, and its processes. A zygote gets these one by one, without expectations."""

    tree: SourceTree
    """The files that every process finds."""
    processes: tuple[TestProcess, ...]
    import_roots: tuple[str, ...]
    source_paths: tuple[str, ...]
    options: tuple[str, ...]
    split: SplitSurface | None = None

    def header(self, connections: int) -> bytes:
        """The first message to a zygote: its settings, then the files."""
        listing = [(path, len(content), path in self.tree.executable) for path, content in self.tree.files.items()]
        settings = {
            "files": listing,
            "import_roots": self.import_roots,
            "source_paths": self.source_paths,
            "options": self.options,
            "split": self.split.model_dump() if self.split else None,
            "connections": connections,
        }
        return frames.pack_json(settings) + frames.pack(b"".join(self.tree.files.values()))


@dataclass
class ProcessReport:
    """What the host received about one test process."""

    name: str
    output: bytearray = field(default_factory=bytearray)
    status: int | None = None
    """The wait status; None if it never ran or the sandbox ended first."""
    timed_out: bool = False
    changed_files: tuple[str, ...] = ()
    tampered: str | None = None
    """Which limits or settings of the trusted parent it changed."""


@dataclass(frozen=True)
class JobReport:
    """What the host received about one job."""

    processes: dict[str, ProcessReport]
    sandbox: ExecResult
    seconds: float
    timed_out: bool
    done: bool
    """Whether the zygote reported the end of the job."""


@functools.cache
def runner_policy(interpreter: Path | None, memory_mb: int = 2048) -> SandboxPolicy:
    """The sandbox of a test process: of the host it sees the interpreter and the package `in_sandbox`, nothing else."""
    limits = SandboxLimits(wall_seconds=_DAY_SECONDS, memory_mb=memory_mb, processes=256, disk_mb=1024)
    own, hidden = (interpreter_prefixes(interpreter), hidden_packages(interpreter)) if interpreter else ((), ())
    return SandboxPolicy(
        python=interpreter is None,
        read_only=(str(IN_SANDBOX), *own),
        hidden=hidden,
        limits=limits,
        denied_syscalls=_OUTLIVE_PROCESSES,
    )


class Zygote:
    """A program of `in_sandbox` in a sandbox of its own, ready for its one job."""

    def __init__(
        self, sandbox_policy: SandboxPolicy, interpreter: Path | None = None, module: ZygoteProgram = "zygote"
    ) -> None:
        python = str(interpreter or sys.executable)
        plugins = installed_pytest_plugins(interpreter) if module == "zygote" else ()
        argv = [python, *_FLAGS, "-c", _START.format(module=module), str(IN_SANDBOX.parent), *plugins]
        self._connection: InteractiveProcess = open_interactive(SandboxSpec(policy=sandbox_policy), argv)
        self._connection.socket.settimeout(_START_SECONDS)
        try:
            self.receive_bytes()
        except (frames.FrameError, OSError) as error:
            self._connection.close()
            raise SandboxError(self._why_not(python, error)) from error

    def _why_not(self, python: str, error: Exception) -> str:
        lines = self._connection.result().stderr.strip().splitlines()
        reason = lines[-1] if lines else str(error)
        if "No module named" in reason and "pytest" in reason:
            raise BadInput(f"the interpreter {python} has no pytest; install it there")
        return f"the test runner did not start under {python}: {reason}"

    def begin(self, seconds: float) -> None:
        """Treat the program as hostile from now on; a wait for it ends after this many seconds."""
        self._connection.watch_closely()
        self._connection.socket.settimeout(seconds)

    def send(self, data: bytes) -> None:
        self._connection.socket.sendall(data)

    def send_socket(self, end: socket.socket) -> None:
        """Pass one end of a connection on, and close it here."""
        socket.send_fds(self._connection.socket, [b"+"], [end.fileno()])
        end.close()

    def receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.receive_bytes())
        return message

    def receive_bytes(self) -> bytes:
        return frames.read_frame(self._connection.socket.recv)

    def run(self, job: ZygoteJob, seconds: float, sockets: Sequence[socket.socket] = ()) -> JobReport:
        """Do the job. Time is measured here: output that comes after `seconds` is not read.

        The sockets are passed on, one to each process, and closed here, so that the other end sees when the process
        closes its own.
        """
        began = time.monotonic()
        self._connection.watch_closely()
        channel = self._connection.socket
        reports = [ProcessReport(process.name) for process in job.processes]
        timed_out = done = after_timeout = False
        try:
            channel.settimeout(seconds)
            channel.sendall(job.header(len(sockets)))
            if sockets:
                socket.send_fds(channel, [b"+"], [end.fileno() for end in sockets])
                for end in sockets:
                    end.close()
            received = 0
            while received < _MOST_OUTPUT:
                channel.settimeout(max(0.001, began + seconds - time.monotonic()))
                message = self.receive()
                if "next" in message:
                    channel.sendall(_next_request(job, message["next"], after_timeout))
                elif "told" in message:
                    data = self.receive_bytes()
                    received += len(data)
                    reports[message["told"]].output += data
                    after_timeout = after_timeout or b'"result": "timed_out"' in data
                elif "step" in message:
                    report = reports[message["step"]]
                    report.status, report.timed_out = message["status"], message["late"]
                    report.changed_files, report.tampered = tuple(message["rewritten"]), message["tampered"]
                else:
                    done = True
                    break
        except TimeoutError:
            timed_out = True
        except (frames.FrameError, OSError):
            pass  # ended by its own processes or by a limit: the sandbox's result says which
        took = time.monotonic() - began
        self._connection.close()
        return JobReport({report.name: report for report in reports}, self._connection.result(), took, timed_out, done)

    def close(self) -> None:
        self._connection.close()

    def violations(self, start: int) -> tuple[PolicyViolation, ...]:
        """The system calls that were refused so far, from this position on."""
        return self._connection.violations(start)

    def result(self) -> ExecResult:
        """What the sandbox reports of a program that has ended or was closed."""
        return self._connection.result()


def _next_request(job: ZygoteJob, number: int, after_timeout: bool) -> bytes:
    """The answer when a zygote asks for its next process: the time limit for the zygote, then the request for the
    child; or the end. The number and the names of the processes are not sent."""
    if number == len(job.processes):
        return frames.pack_json({"over": True})
    process = job.processes[number]
    return frames.pack_json({"seconds": process.seconds}) + frames.pack_json(process.request(after_timeout))


class ZygotePool:
    """Zygotes started ahead, `size` of each kind. With size 0 each one is started when it is asked for."""

    def __init__(self, size: int = 0) -> None:
        self._size = size
        self._pools: dict[tuple[Path | None, int, ZygoteProgram], WarmPool[Zygote]] = {}
        self._lock = threading.Lock()

    def take(self, interpreter: Path | None, memory_mb: int, module: ZygoteProgram = "zygote") -> Zygote:
        """An unused zygote; the caller runs its job or closes it."""

        def make() -> Zygote:
            return Zygote(runner_policy(interpreter, memory_mb), interpreter, module)

        if not self._size:
            return make()
        key = (interpreter, memory_mb, module)
        with self._lock:
            if key not in self._pools:
                self._pools[key] = WarmPool(make, self._size)
        return self._pools[key].take()

    def close(self) -> None:
        with self._lock:
            for pool in self._pools.values():
                pool.close()
            self._pools.clear()

    def __enter__(self) -> "ZygotePool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
