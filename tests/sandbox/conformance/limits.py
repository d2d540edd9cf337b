"""What a command may take: every limit ends it and is named, and within them it is left alone."""

from gametape.sandbox.policy import SandboxLimits, SandboxPolicy
from tests.sandbox.conformance.bench import SMALL, Bench, Case, promise

_BOMBS = {
    "time": ({"wall_seconds": 0.7}, "import time\nwhile True: time.sleep(1)"),
    "cpu": ({"cpu_seconds": 1}, "while True: pass"),
    "memory": ({}, "x = []\nwhile True: x.append(bytearray(1 << 22))"),
    "processes": ({}, "import os, time\nwhile True:\n  if os.fork() == 0: time.sleep(100)"),
    "disk": ({}, "f = open('big', 'wb')\nwhile True: f.write(bytes(1 << 20)); f.flush()"),
    "output": ({}, "while True: print('x' * 1000)"),
}


def _bomb(limit: str) -> Case:
    def case(bench: Bench) -> None:
        if bench.name == "docker" and limit == "processes":
            return  # the engine holds it and does not tell
        changes, code = _BOMBS[limit]
        workspace = bench.directory("workspace")
        result = bench.python(code, workspace, limits=SMALL.model_copy(update=changes))
        assert (result.killed_by, result.ok) == (limit, False), result
        assert len(result.stdout) + len(result.stderr) <= SMALL.output_bytes

    case.__name__ = f"the_limit_on_{limit}_ends_a_command_and_is_named"
    return promise(case)


for _limit in _BOMBS:
    _bomb(_limit)


@promise
def within_its_limits_a_command_is_left_alone(bench: Bench) -> None:
    code = """
import subprocess, threading, time
x = bytearray(b'x' * (60 << 20))
threads = [threading.Thread(target=time.sleep, args=(0.2,)) for _ in range(30)]
[t.start() for t in threads]; [t.join() for t in threads]
subprocess.run(["true"], check=True)
open("file", "wb").write(bytes(20 << 20))
print("y" * 50_000)
"""
    result = bench.python(code, bench.directory("workspace"), limits=SMALL)
    assert (result.exit_code, result.killed_by, result.stderr) == (0, None, ""), result


@promise
def small_limits_leave_room_for_a_small_command(bench: Bench) -> None:
    """What the backend needs for itself is not charged to the command."""
    tight = SandboxLimits(memory_mb=16, processes=1, open_files=16, file_size_mb=1, disk_mb=1)
    result = bench.run("echo", "fits", policy=SandboxPolicy(limits=tight))
    assert (result.stdout, result.killed_by) == ("fits\n", None), result


@promise
def descriptors_and_file_sizes_run_out(bench: Bench) -> None:
    limits = SMALL.model_copy(update={"open_files": 32, "file_size_mb": 5})
    assert "Too many open files" in bench.python("x = [open('/dev/null') for _ in range(100)]", limits=limits).stderr
    assert "File too large" in bench.python("open('f', 'wb').write(bytes(10 << 20))", limits=limits).stderr
