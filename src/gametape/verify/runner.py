"""The host's end of a zygote: one warm sandbox that runs one job of tests and is thrown away.

What comes out is a `ProcessReport` per test process: the words of that process, which are hostile, and how it ended,
which is the kernel's word.
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
from typing import Any

from gametape.core.errors import BadInput
from gametape.core.task import SplitSurface
from gametape.record.source_tree import SourceTree
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.interactive import InteractiveProcess, open_interactive
from gametape.sandbox.keeper_client import SandboxError
from gametape.sandbox.policy import SandboxLimits, SandboxPolicy
from gametape.sandbox.pool import WarmPool
from gametape.sandbox.result import ExecResult
from gametape.verify.in_sandbox import frames
from gametape.verify.interpreter import hidden_packages, interpreter_prefixes

IN_SANDBOX = Path(__file__).resolve().parent / "in_sandbox"
_START = "import sys; sys.path.insert(0, sys.argv[1]); from in_sandbox.{module} import main; main()"
_FLAGS = ("-I", "-B", "--check-hash-based-pycs", "always")
_OUTLIVE_PROCESSES = ("shmget", "msgget", "semget", "mq_open")
"""What they make stays when the process that made it is gone, for the next one to find."""
_A_DAY = 24 * 3600.0
_START_SECONDS = 60.0
_MOST_OUTPUT = 256 << 20
_CALL_SECONDS, _AFTER_TIMEOUT = 12.0, 0.25
"""What one call over the wire may take in split mode; less after one that took too long."""


@dataclass(frozen=True)
class TestProcess:
    """One test process: a test file, and which of its tests to run."""

    name: str
    path: str
    tests: tuple[str, ...]
    laid: dict[str, str]
    """Test files that only this step finds: text, undecodable bytes as surrogates."""
    shuffle: int | None = None
    messages: bool = True
    trace: tuple[str, ...] = ()
    blank: bool = False
    """Whether the text of the tests is to be gone when the code under test is imported."""
    seconds: float = 60.0
    """Of processor time; by the clock it may take a few times as long."""

    def request(self, after_timeout: bool) -> dict[str, object]:
        """What only the process of this step is told."""
        names = ("path", "tests", "laid", "shuffle", "trace", "blank")
        seconds = _CALL_SECONDS * (_AFTER_TIMEOUT if after_timeout else 1)
        return {**{name: getattr(self, name) for name in names}, "call_seconds": seconds}


@dataclass(frozen=True)
class ZygoteJob:
    """What a zygote needs to know, and its steps, which it is told one by one, without a word about expectations."""

    tree: SourceTree
    """What every step finds."""
    processes: tuple[TestProcess, ...]
    import_roots: tuple[str, ...]
    source_paths: tuple[str, ...]
    options: tuple[str, ...]
    split: SplitSurface | None = None

    def header(self, connections: int) -> bytes:
        """What a zygote is told first, and the files."""
        listing = [(path, len(content), path in self.tree.executable) for path, content in self.tree.files.items()]
        told = {
            "files": listing,
            "import_roots": self.import_roots,
            "source_paths": self.source_paths,
            "options": self.options,
            "split": self.split.model_dump() if self.split else None,
            "connections": connections,
        }
        return frames.pack_json(told) + frames.pack(b"".join(self.tree.files.values()))


@dataclass
class ProcessReport:
    """One test process, seen from outside."""

    name: str
    output: bytearray = field(default_factory=bytearray)
    status: int | None = None
    """The wait status; None: it never ran, or the sandbox ended under it."""
    timed_out: bool = False
    changed_files: tuple[str, ...] = ()
    tampered: str | None = None
    """What it did to the trusted parent."""


@dataclass(frozen=True)
class JobReport:
    """One job, seen from outside."""

    processes: dict[str, ProcessReport]
    sandbox: ExecResult
    seconds: float
    timed_out: bool
    done: bool
    """The zygote itself lived to say that it was done."""


@functools.cache
def runner_policy(interpreter: Path | None, memory_mb: int = 2048) -> SandboxPolicy:
    """The wall around a test process: nothing of the host but the interpreter and what runs inside."""
    limits = SandboxLimits(wall_seconds=_A_DAY, memory_mb=memory_mb, processes=256, disk_mb=1024)
    own, hidden = (interpreter_prefixes(interpreter), hidden_packages(interpreter)) if interpreter else ((), ())
    return SandboxPolicy(
        python=interpreter is None,
        read_only=(str(IN_SANDBOX), *own),
        hidden=hidden,
        limits=limits,
        denied_syscalls=_OUTLIVE_PROCESSES,
    )


class Zygote:
    """A program of `inside` in a sandbox of its own, ready for its one job."""

    def __init__(self, sandbox_policy: SandboxPolicy, interpreter: Path | None = None, module: str = "zygote") -> None:
        python = str(interpreter or sys.executable)
        argv = [python, *_FLAGS, "-c", _START.format(module=module), str(IN_SANDBOX.parent)]
        self._dialogue: InteractiveProcess = open_interactive(SandboxSpec(policy=sandbox_policy), argv)
        self._dialogue.socket.settimeout(_START_SECONDS)
        try:
            self.receive_bytes()
        except (frames.FrameError, OSError) as error:
            self._dialogue.close()
            raise SandboxError(self._why_not(python, error)) from error

    def _why_not(self, python: str, error: Exception) -> str:
        lines = self._dialogue.result().stderr.strip().splitlines()
        reason = lines[-1] if lines else str(error)
        if "No module named" in reason and "pytest" in reason:
            raise BadInput(f"the interpreter {python} has no pytest; install it there")
        return f"the test runner did not start under {python}: {reason}"

    def begin(self, seconds: float) -> None:
        """From here on it is hostile; whoever waits for it waits no longer than this."""
        self._dialogue.watch_closely()
        self._dialogue.socket.settimeout(seconds)

    def send(self, data: bytes) -> None:
        self._dialogue.socket.sendall(data)

    def receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.receive_bytes())
        return message

    def receive_bytes(self) -> bytes:
        return frames.read_frame(self._dialogue.socket.recv)

    def run(self, job: ZygoteJob, seconds: float, sockets: Sequence[socket.socket] = ()) -> JobReport:
        """Do the job. Time is measured here; whatever has not been told when it is up is not told.

        The sockets are given away, one to each step: the other end must see it when they are closed inside.
        """
        began = time.monotonic()
        self._dialogue.watch_closely()
        channel = self._dialogue.socket
        steps = [ProcessReport(step.name) for step in job.processes]
        timed_out = done = in_a_hurry = False
        try:
            channel.settimeout(seconds)
            channel.sendall(job.header(len(sockets)))
            if sockets:
                socket.send_fds(channel, [b"+"], [one.fileno() for one in sockets])
                for one in sockets:
                    one.close()
            heard = 0
            while heard < _MOST_OUTPUT:
                channel.settimeout(max(0.001, began + seconds - time.monotonic()))
                message = self.receive()
                if "next" in message:
                    channel.sendall(_next_request(job, message["next"], in_a_hurry))
                elif "told" in message:
                    data = self.receive_bytes()
                    heard += len(data)
                    steps[message["told"]].output += data
                    in_a_hurry = in_a_hurry or b'"result": "timed_out"' in data
                elif "step" in message:
                    report = steps[message["step"]]
                    report.status, report.late = message["status"], message["late"]
                    report.rewritten, report.tampered = tuple(message["rewritten"]), message["tampered"]
                else:
                    done = True
                    break
        except TimeoutError:
            timed_out = True
        except (frames.FrameError, OSError):
            pass  # it was ended from inside or by a limit: the sandbox's result says which
        took = time.monotonic() - began
        self._dialogue.close()
        return JobReport({step.name: step for step in steps}, self._dialogue.result(), took, timed_out, done)

    def close(self) -> None:
        self._dialogue.close()


def _next_request(job: ZygoteJob, number: int, after_timeout: bool) -> bytes:
    """What follows when the zygote asks for its next step: its time, for the zygote, and the rest for the child; or the
    end. How many there are, and what they are called, is nobody's business inside."""
    if number == len(job.processes):
        return frames.pack_json({"over": True})
    step = job.processes[number]
    return frames.pack_json({"seconds": step.seconds}) + frames.pack_json(step.request(after_timeout))


class ZygotePool:
    """With `size` 0 nothing is prepared ahead: every zygote is started when it is asked for."""

    def __init__(self, size: int = 0) -> None:
        self._size = size
        self._pools: dict[tuple[Path | None, int, str], WarmPool[Zygote]] = {}
        self._lock = threading.Lock()

    def take(self, interpreter: Path | None, memory_mb: int, module: str = "zygote") -> Zygote:
        """A zygote that nobody has used; the caller gives it its job, or closes it."""

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
