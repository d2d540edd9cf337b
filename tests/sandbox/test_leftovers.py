"""Many runs in a row, a third of them killed at a random moment: the host is as it was before."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from gametape.sandbox import cgroups
from gametape.sandbox.launcher import close_keeper

# A host program: starts a sandbox whose command leaves a daemon behind, holds files open and keeps children.
HOST = """
import sys
from pathlib import Path
from gametape.sandbox.backend import Spec
from gametape.sandbox.bubblewrap import BubblewrapSandbox
from gametape.sandbox.hardening import ALL
print("started", flush=True)
code = "echo x > file; (setsid sleep 1000 &) ; sleep 1000 & sleep " + sys.argv[2]
BubblewrapSandbox(Spec(workspace=Path(sys.argv[1])), ALL).exec(["sh", "-c", code])
"""


def host_state() -> dict[str, object]:
    layout = cgroups.find_layout()
    groups = {name for parent in (layout.parents.values() if layout else ()) for name in os.listdir(parent)}
    return {
        "processes": {name for name in os.listdir("/proc") if name.isdigit() and is_ours(name)},
        "mounts": Path("/proc/self/mountinfo").read_text(),
        "groups": {name for name in groups if name.startswith(cgroups.PREFIX)},
        "temporary": {name for name in os.listdir(tempfile.gettempdir()) if "gametape" in name},
        "shared memory": set(os.listdir("/dev/shm")),
    }


def is_ours(pid: str) -> bool:
    """A keeper, bubblewrap, or the command inside."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"gametape.sandbox.keeper" in line or b"bwrap" in line or line.startswith(b"sleep\x001000")


def run_many(count: int, workspace: Path, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        command = [sys.executable, "-c", HOST, str(workspace), "0" if (calm := rng.random() > 1 / 3) else "5"]
        host = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            assert host.stdout is not None
            host.stdout.readline()
            if not calm:
                time.sleep(rng.random() * 0.15)
                host.kill()
            assert host.wait(timeout=30) == (0 if calm else -signal.SIGKILL)
        finally:
            host.kill()
            host.stdout.close()


def check_nothing_left(count: int, tmp_path: Path) -> None:
    close_keeper()
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    before = host_state()
    run_many(count, workspace, seed=count)
    deadline = time.monotonic() + 10  # a keeper that lost its host a moment ago is still cleaning up
    while (after := host_state()) != before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert after == before
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "workspace"]


def test_nothing_is_left_after_30_runs_a_third_of_them_killed(tmp_path: Path) -> None:
    check_nothing_left(30, tmp_path)


@pytest.mark.slow
def test_nothing_is_left_after_1000_runs_a_third_of_them_killed(tmp_path: Path) -> None:
    check_nothing_left(1000, tmp_path)
