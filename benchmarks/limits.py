"""Attempts to get more than a limit allows: what each got, what ended it, and how long after the limit was passed.

Run it with `python benchmarks/limits.py`. Every attempt runs inside a sandbox, with small limits, and may take them as
fast as it can. `got` is the most that the attempt held; `after` is the time from the moment at which it passed the
limit until nothing of it was left. Times are one machine's on one day.
`--save` writes the table to benchmarks/results/limits.json.
"""

import argparse
import json
import os
import platform
import struct
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gametape.sandbox.backend import SandboxSpec, backends, open_backend
from gametape.sandbox.policy import SandboxLimits, SandboxPolicy
from gametape.sandbox.result import ExecResult

RESULTS = Path(__file__).parent / "results" / "limits.json"
LIMITS = SandboxLimits(
    wall_seconds=20, memory_mb=400, processes=64, disk_mb=20, output_bytes=100_000, open_files=1024, file_size_mb=1024
)
_NOTE = struct.Struct("dd")

PRELUDE = """
import ctypes, mmap, os, signal, socket, struct, sys, threading, time
from pathlib import Path
note = mmap.mmap(os.open('.note', os.O_RDWR), 16)
total = 0
def got(amount, allowed={allowed}):
    global total
    total += amount
    since = struct.unpack('dd', note[:])[1]
    note[:] = struct.pack('dd', total, since or (time.monotonic() if total > allowed else 0))
def make(path): return os.open(path, os.O_CREAT | os.O_RDWR)
MB = 1 << 20
block, text = bytes(MB), b'x' * MB
libc = ctypes.CDLL(None, use_errno=True)
"""


@dataclass(frozen=True)
class Attempt:
    """A program that takes more than one of its limits allows."""

    name: str
    limit: str
    code: str
    files_before: int = 0
    changes: dict[str, Any] = field(default_factory=dict)

    @property
    def limits(self) -> SandboxLimits:
        return SandboxLimits(**{**LIMITS.model_dump(), **self.changes})


def _disk(name: str, code: str, **changes: Any) -> Attempt:
    return Attempt(f"disk: {name}", "disk", code, **changes)


ATTEMPTS = (
    _disk("posix_fallocate, 3 files of 1 GB", "for n in range(3): os.posix_fallocate(make(f'f{n}'), 0, 1 << 30)"),
    _disk(
        "fallocate that keeps the size",
        "for n in range(3):\n  libc.fallocate(make(f'f{n}'), 1, ctypes.c_long(0), ctypes.c_long(1 << 30))",
    ),
    _disk(
        "the older call for it, an ioctl",
        """
import fcntl
for n in range(3):
  fcntl.ioctl(make(f'f{n}'), 0x4030582a, struct.pack('hhqqiI16x', 0, 0, 0, 1 << 30, 0, 0))
""",
    ),
    _disk("one file, written", "f = make('f')\nwhile True: got(os.write(f, block))"),
    _disk(
        "many files, written",
        "for n in range(9999): got(os.write(make(f'f{n % 900}.{n}'), block)); os.closerange(9, 99)",
    ),
    _disk(
        "60 processes write many files",
        """
for k in range(60):
  if os.fork() == 0:
    for n in range(9999):
      f = make(f'f{k}.{n}'); os.write(f, block); os.close(f)
time.sleep(15)
""",
    ),
    _disk(
        "the same among 20,000 files of the user",
        "for n in range(9999): f = make(f'f{n}'); got(os.write(f, block)); os.close(f)",
        files_before=20_000,
    ),
    _disk("a hole, by ftruncate", "os.ftruncate(make('f'), 900 * MB)"),
    _disk(
        "900 holes of 19 MB",
        "for n in range(900): f = make(f'f{n}'); os.ftruncate(f, 19 * MB); os.close(f)\ntime.sleep(3)",
    ),
    _disk(
        "holes, by writing at an offset",
        "for n in range(900): f = make(f'f{n}'); os.pwrite(f, b'x', 19 * MB); os.close(f)\ntime.sleep(3)",
    ),
    _disk(
        "mapped files, touched",
        """
for n in range(900):
  f = make(f'f{n}'); os.ftruncate(f, 10 * MB); m = mmap.mmap(f, 10 * MB); os.close(f)
  for at in range(0, 10 * MB, MB): m[at:at + MB] = block; got(MB)
""",
    ),
    _disk(
        "copy_file_range",
        """
a = make('a'); os.write(a, block * 10)
for n in range(900):
  f = make(f'f{n}'); got(os.copy_file_range(a, f, 10 * MB, 0)); os.close(f)
""",
    ),
    _disk(
        "files without a name (O_TMPFILE)",
        """
held = []
while True: held.append(os.open('.', os.O_TMPFILE | os.O_RDWR)); got(os.write(held[-1], block * 10))
""",
    ),
    _disk(
        "/tmp, /dev/shm and $HOME at once",
        """
for place in ('/tmp', '/dev/shm', os.environ['HOME']):
  if os.fork() == 0:
    f = make(place + '/f')
    while os.write(f, block): pass
while True:
  places = {os.stat(p).st_dev: os.statvfs(p) for p in ('/tmp', '/dev/shm', os.environ['HOME'])}
  got(sum((s.f_blocks - s.f_bfree) * s.f_frsize for s in places.values()) - total)
""",
    ),
    _disk("fallocate in /tmp", "for n in range(30): os.posix_fallocate(make(f'/tmp/f{n}'), 0, 19 * MB); got(19 * MB)"),
    _disk("empty files", "for n in range(10**6): os.close(make(f'f{n}')); got(1024)"),
    _disk("empty files in /tmp", "for n in range(10**6): os.close(make(f'/tmp/f{n}')); got(1024)"),
    _disk("directories", "for n in range(10**6): os.mkdir(f'd{n}'); got(4096)"),
    _disk(
        "hard links with long names",
        """
for n in range(10**6):
  if n % 60000 == 0: os.close(make(f'o{n}'))
  os.link(f'o{n // 60000 * 60000}', f'{n:0240}')
""",
    ),
    _disk("long symbolic links", "for n in range(10**6): os.symlink(f'{n:04000}', f's{n}'); got(4096)"),
    _disk(
        "attributes",
        "for n in range(10**6): os.close(make(f'f{n}')); os.setxattr(f'f{n}', 'user.x', os.urandom(3900)); got(4096)",
    ),
    Attempt(
        "memory: a file in memory",
        "memory",
        "f = os.memfd_create('m')\nwhile True: got(os.write(f, block))",
        changes={"disk_mb": 1024},
    ),
    Attempt(
        "memory: shared pages of 30 processes",
        "memory",
        """
for k in range(30):
  if os.fork() == 0:
    held = [mmap.mmap(-1, MB) for _ in range(90)]
    for m in held: m.write(block)
    time.sleep(9)
time.sleep(9)
""",
    ),
    Attempt(
        "memory: full pipes and sockets",
        "memory",
        """
held = []
while True:
  a, b = socket.socketpair(); a.setblocking(False); held.append((a, b))
  a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * MB)
  try:
    while True: got(a.send(block))
  except BlockingIOError: pass
""",
    ),
    Attempt(
        "time: signals ignored, a new session",
        "time",
        """
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}: signal.signal(number, signal.SIG_IGN)
os.fork() or os.setsid()
while True: time.sleep(1)
""",
        changes={"wall_seconds": 1.0},
    ),
    Attempt(
        "cpu: 60 processes",
        "cpu",
        "for _ in range(60): os.fork() or exec('while True: pass')\ntime.sleep(15)",
        changes={"cpu_seconds": 1},
    ),
    Attempt(
        "cpu: many short processes",
        "cpu",
        "while True:\n  if os.fork() == 0: sum(range(10**6)); os._exit(0)\n  os.wait()",
        changes={"cpu_seconds": 1},
    ),
    Attempt(
        "processes: threads and forks",
        "processes",
        "while True:\n  threading.Thread(target=time.sleep, args=(9,)).start()\n  os.fork()",
    ),
    Attempt(
        "output: 60 processes, both streams",
        "output",
        "for _ in range(60): os.fork() or exec('while True: os.write(1, text); os.write(2, text)')\ntime.sleep(15)",
    ),
)


def _held_on_disk(workspace: Path) -> float:
    """What lies in the workspace, holes included, with a kilobyte for each file; in megabytes."""
    total, seen = workspace.stat().st_size, set[int]()
    for directory, subdirectories, names in os.walk(workspace):
        for name in (*subdirectories, *names):
            status = os.lstat(os.path.join(directory, name))
            if not name.startswith(("user-", ".note")) and status.st_ino not in seen:
                seen.add(status.st_ino)
                total += max(status.st_blocks * 512, status.st_size) + 1024
    return total / 2**20


def _amount(attempt: Attempt, result: ExecResult, noted: float, workspace: Path) -> tuple[float, float, str]:
    """What the attempt got, what was allowed, and the unit."""
    limits, usage = attempt.limits, result.usage
    measures: dict[str, Callable[[], tuple[float, float, str]]] = {
        "disk": lambda: (max(noted / 2**20, _held_on_disk(workspace)), limits.disk_mb, "MB"),
        "memory": lambda: (max(noted, usage.peak_memory_bytes or 0) / 2**20, limits.memory_mb, "MB"),
        "time": lambda: (usage.wall_seconds, limits.wall_seconds, "s"),
        "cpu": lambda: (usage.cpu_seconds or 0.0, limits.cpu_seconds or 0, "s"),
        "processes": lambda: (usage.peak_processes or 0, limits.processes, ""),
        "output": lambda: (len(result.stdout) + len(result.stderr), limits.output_bytes, "bytes"),
    }
    return measures[attempt.limit]()


def measure(attempt: Attempt, backend: str) -> dict[str, Any]:
    limits = attempt.limits
    allowed = (limits.disk_mb if attempt.limit == "disk" else limits.memory_mb) << 20
    with tempfile.TemporaryDirectory(prefix="limits-") as directory:
        workspace = Path(directory)
        (workspace / ".note").write_bytes(bytes(_NOTE.size))
        for number in range(attempt.files_before):
            (workspace / f"user-{number}").touch()
        code = PRELUDE.replace("{allowed}", str(allowed)) + attempt.code
        spec = SandboxSpec(policy=SandboxPolicy(limits=limits), workspace=workspace)
        result = open_backend(backend).start(spec).exec(["python3", "-c", code])
        ended = time.monotonic()
        noted, since = _NOTE.unpack((workspace / ".note").read_bytes())
        amount, most, unit = _amount(attempt, result, noted, workspace)
        users = sum(1 for name in os.listdir(workspace) if name.startswith("user-"))
    if users != attempt.files_before:
        raise SystemExit(f"{attempt.name}: files of the user are gone")
    refused = result.stderr.strip().splitlines()[-1:] if result.killed_by is None and result.exit_code else []
    return {
        "attempt": attempt.name,
        "allowed": most,
        "got": round(amount, 2),
        "unit": unit,
        "exit_code": result.exit_code,
        "ended_by": result.killed_by or (refused[0] if refused else None),
        "after_ms": round((ended - since) * 1000) if since else None,
        "seconds": round(result.usage.wall_seconds, 2),
    }


def show(rows: list[dict[str, Any]]) -> None:
    table = Table(title="attempts at limits", title_justify="left")
    for column in ("attempt", "allowed", "got", "exit code", "ended by", "after ms"):
        table.add_column(column, justify="left" if column in ("attempt", "ended by") else "right")
    for row in rows:
        after = "" if row["after_ms"] is None else str(row["after_ms"])
        numbers = (f"{row[key]:g} {row['unit']}" for key in ("allowed", "got"))
        table.add_row(row["attempt"], *numbers, str(row["exit_code"]), row["ended_by"] or "nothing", after)
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=list(backends()), default="bubblewrap")
    parser.add_argument("--only", default="", help="attempts whose name holds this text")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name} beside this script")
    options = parser.parse_args()
    rows = [measure(attempt, options.backend) for attempt in ATTEMPTS if options.only in attempt.name]
    show(rows)
    if options.save:
        machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
        RESULTS.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
