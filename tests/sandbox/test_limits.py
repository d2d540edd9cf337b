"""Every limit ends the command that reaches it, and the result names it; with control groups and without."""

import os
from pathlib import Path

import pytest

from gametape.sandbox import cgroups
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.bubblewrap import BubblewrapBackend
from gametape.sandbox.policy import SandboxLimits, SandboxPolicy
from gametape.sandbox.result import ExecResult
from tests.patience import HANG, processes_with

SMALL = SandboxLimits(wall_seconds=HANG, memory_mb=200, processes=40, disk_mb=40, output_bytes=100_000)

BOMBS = {
    "time": (SMALL.model_copy(update={"wall_seconds": 0.5}), "import time\nwhile True: time.sleep(1)"),
    "cpu": (SMALL.model_copy(update={"cpu_seconds": 1}), "import os\nos.fork()\nwhile True: pass"),
    "memory": (SMALL, "x = []\nwhile True: x.append(bytearray(1 << 22))"),
    "processes": (SMALL, "import os, time\nwhile True:\n  if os.fork() == 0: time.sleep(100)"),
    "disk": (SMALL, "f = open('big', 'wb')\nwhile True: f.write(bytes(1 << 20)); f.flush()"),
    "output": (SMALL, "while True: print('x' * 1000)"),
}


@pytest.fixture(params=["control group", "watching"])
def measures(request: pytest.FixtureRequest) -> frozenset[str]:
    if request.param == "control group":
        if cgroups.find_layout() is None:
            pytest.skip("no writable control group here")
        return frozenset()
    return frozenset({"control-group"})


def run(code: str, limits: SandboxLimits, workspace: Path | None, without: frozenset[str] = frozenset()) -> ExecResult:
    spec = SandboxSpec(policy=SandboxPolicy(limits=limits), workspace=workspace)
    return BubblewrapBackend().start(spec, without=without).exec(["python3", "-c", code])


@pytest.mark.parametrize("limit", BOMBS)
def test_the_limit_that_ends_a_command_is_named(limit: str, measures: frozenset[str], tmp_path: Path) -> None:
    limits, code = BOMBS[limit]
    result = run(code, limits, tmp_path, without=measures)
    assert result.killed_by == limit
    assert result.exit_code != 0
    assert result.assurance == ("reduced" if measures else "full")


@pytest.mark.parametrize(
    "code",
    [
        "f = open('/tmp/big', 'wb')\nwhile True: f.write(bytes(1 << 20)); f.flush()",
        "f = open('/dev/shm/big', 'wb')\nwhile True: f.write(bytes(1 << 20)); f.flush()",
        "for n in range(10**6): open(f'f{n}', 'wb').write(bytes(100000))",
        "import os\nos.mkdir('d', 0o300)\nfor n in range(10**6): open(f'd/f{n}', 'wb').write(bytes(100000))",
    ],
    ids=["tmp", "shared memory", "many files", "closed directory"],
)
def test_every_way_to_fill_the_disk_ends(code: str, tmp_path: Path) -> None:
    assert run(code, SMALL, tmp_path).killed_by == "disk"


def test_a_file_that_is_deleted_but_open_holds_no_more_than_the_limit(tmp_path: Path) -> None:
    """At the limit a write fails; where that ends the command before anybody looks, nothing is left to be seen."""
    code = "import os\nf = open('x', 'wb'); os.unlink('x')\nwhile True: f.write(bytes(1 << 20)); f.flush()"
    result = run(code, SMALL, tmp_path)
    assert result.killed_by == "disk" or (result.killed_by is None and "File too large" in result.stderr)


def test_a_file_that_is_deleted_and_kept_open_is_found(tmp_path: Path) -> None:
    code = """
import os, time
f = open('x', 'wb'); os.unlink('x')
try:
    while True: f.write(bytes(1 << 20)); f.flush()
except OSError:
    time.sleep(600)
"""
    assert run(code, SMALL, tmp_path).killed_by == "disk"


def test_files_that_were_there_before_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(bytes(60 << 20))
    result = run("open('new', 'wb').write(bytes(20 << 20))", SMALL, tmp_path)
    assert (result.exit_code, result.killed_by) == (0, None)


def test_a_command_within_its_limits_is_left_alone(measures: frozenset[str], tmp_path: Path) -> None:
    code = """
import threading, subprocess
x = bytearray(60 << 20)
threads = [threading.Thread(target=lambda: None) for _ in range(10)]
[t.start() for t in threads]; [t.join() for t in threads]
subprocess.run(["true"], check=True)
open("file", "wb").write(bytes(20 << 20))
print("y" * 50_000)
"""
    result = run(code, SMALL, tmp_path, without=measures)
    assert (result.exit_code, result.killed_by, result.stderr) == (0, None, "")
    assert result.usage.peak_memory_bytes is None or result.usage.peak_memory_bytes > 0


def test_forks_that_share_memory_are_counted_once(tmp_path: Path) -> None:
    code = """
import os, time
x = bytearray(80 << 20)
[os.fork() or (time.sleep(0.5), os._exit(0)) for _ in range(4)]
time.sleep(0.5)
"""
    assert run(code, SMALL, tmp_path, without=frozenset({"control-group"})).killed_by is None


def test_what_is_left_behind_is_ended_and_is_no_kill(tmp_path: Path) -> None:
    nonce = f"nonce-{os.getpid()}"
    code = f"""
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(100000)  # {nonce}
    os._exit(0)
"""
    result = run(code, SMALL, tmp_path)
    assert (result.exit_code, result.killed_by) == (0, None)
    assert processes_with(nonce) == []


def test_output_is_kept_up_to_the_cap(tmp_path: Path) -> None:
    result = run("while True: print('x' * 999)", SMALL, tmp_path)
    assert len(result.stdout) + len(result.stderr) == SMALL.output_bytes


def test_a_signal_is_told_from_an_exit_code(tmp_path: Path) -> None:
    result = run("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", SMALL, tmp_path)
    assert (result.exit_code, result.signal, result.killed_by) == (143, 15, None)


@pytest.mark.parametrize("number", [24, 25], ids=["SIGXCPU", "SIGXFSZ"])
def test_the_signal_of_a_limit_that_was_not_reached_is_no_kill(number: int, tmp_path: Path) -> None:
    limits = SMALL.model_copy(update={"cpu_seconds": 20})
    code = f"import os, signal; signal.signal({number}, signal.SIG_DFL); os.kill(os.getpid(), {number})"
    result = run(code, limits, tmp_path)
    assert (result.signal, result.killed_by) == (number, None)


@pytest.mark.parametrize("place", ["", "/tmp/"])
def test_the_signal_of_a_file_that_is_too_large_is_a_kill(place: str, tmp_path: Path) -> None:
    limits = SMALL.model_copy(update={"file_size_mb": 5})
    code = f"import signal; signal.signal(25, signal.SIG_DFL); open('{place}f', 'wb').write(bytes(10 << 20))"
    result = run(code, limits, tmp_path)
    assert (result.signal, result.killed_by) == (25, "disk")


def test_a_file_past_its_size_limit_stops_growing(tmp_path: Path) -> None:
    limits = SMALL.model_copy(update={"file_size_mb": 5})
    result = run("open('f', 'wb').write(bytes(10 << 20))", limits, tmp_path)
    assert result.exit_code == 1
    assert "File too large" in result.stderr
    assert (tmp_path / "f").stat().st_size <= 5 << 20


def test_open_files_run_out(tmp_path: Path) -> None:
    limits = SMALL.model_copy(update={"open_files": 32})
    assert "Too many open files" in run("x = [open('/dev/null') for _ in range(100)]", limits, tmp_path).stderr
