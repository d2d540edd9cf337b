"""Many runs in a row, a third of them killed at a random moment: the host is as it was before."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gametape.sandbox import cgroups
from tests.patience import HANG, wait_until

# A host program: starts a sandbox whose command leaves a daemon behind, holds files open and keeps children.
HOST = """
import sys
from pathlib import Path
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.bubblewrap import BubblewrapSandbox
from gametape.sandbox.hardening_measures import ALL_MEASURES
from gametape.sandbox.keeper_client import keeper
workspace, seconds, nonce = sys.argv[1:]
print(keeper().pid, flush=True)
code = f"echo x > file; (setsid sleep 1000{nonce} &) ; sleep 1000{nonce} & sleep {seconds}"
BubblewrapSandbox(SandboxSpec(workspace=Path(workspace)), ALL_MEASURES).exec(["sh", "-c", code])
"""


# The same with a live session: a shell that was sent in, and a job of its own.
LIVE_HOST = """
import os, sys
from pathlib import Path
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.keeper_client import keeper
from gametape.sandbox.session import open_session
workspace, seconds, nonce = sys.argv[1:]
print(keeper().pid, flush=True)
session = open_session(SandboxSpec(workspace=Path(workspace)))
session.run(f"echo x > file; sleep 1000{nonce} & sleep {seconds}")
os._exit(0)
"""


@dataclass
class Runs:
    """What was started, so that nothing of anybody else's is mistaken for ours."""

    temporary: Path
    """Where the hosts make temporary files: other runs on this machine use another place."""
    entered: list[str] = field(default_factory=list)
    nonce: str = field(default_factory=lambda: f".{random.SystemRandom().randrange(10**9):09}")
    keepers: list[str] = field(default_factory=list)

    def run_many(self, count: int, workspace: Path, host_program: str) -> None:
        rng = random.Random(count)
        for _ in range(count):
            killed = rng.random() < 1 / 3
            command = [sys.executable, "-c", host_program, str(workspace), "100000" if killed else "0", self.nonce]
            environment = {**os.environ, "TMPDIR": str(self.temporary)}
            host = subprocess.Popen([*self.entered, *command], stdout=subprocess.PIPE, text=True, env=environment)
            try:
                assert host.stdout is not None
                self.keepers.append(host.stdout.readline().strip())
                if killed:
                    time.sleep(rng.random() * 0.15)
                    host.kill()
                assert host.wait(timeout=HANG) == (-signal.SIGKILL if killed else 0)
            finally:
                host.kill()
                host.stdout.close()

    def left(self) -> dict[str, set[str]]:
        layout = cgroups.find_layout()
        groups = {name for parent in (layout.parents.values() if layout else ()) for name in os.listdir(parent)}
        return {
            "processes": {pid for pid in os.listdir("/proc") if pid.isdigit() and self._is_ours(pid)},
            "groups": {name for name in groups if name.startswith(tuple(f"gametape-{pid}-" for pid in self.keepers))},
        }

    def _is_ours(self, pid: str) -> bool:
        try:
            line = Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        except OSError:
            return False
        return self.nonce in line or (pid in self.keepers and "gametape.sandbox.keeper" in line)


@dataclass(frozen=True)
class House:
    """Where the hosts run: mounts and shared memory of their own, so that other tests beside this one do not show."""

    process: str
    entered: list[str]

    def surroundings(self) -> tuple[list[str], list[str]]:
        mounts = Path(f"/proc/{self.process}/mountinfo").read_text().splitlines()
        return mounts, sorted(os.listdir(f"/proc/{self.process}/root/dev/shm"))


@pytest.fixture
def house() -> Iterator[House]:
    if os.geteuid() != 0 or not shutil.which("unshare"):
        yield House("self", [])
        return
    furnish = "mount -t tmpfs none /dev/shm && echo ready && exec sleep infinity"
    holder = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", furnish], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        yield House(str(holder.pid), ["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt", f"--wd={os.getcwd()}"])
    finally:
        holder.kill()
        holder.communicate()


def check_nothing_left(count: int, tmp_path: Path, house: House, host_program: str = HOST) -> None:
    workspace, temporary = tmp_path / "workspace", tmp_path / "temporary"
    workspace.mkdir()
    temporary.mkdir()
    before = house.surroundings()
    runs = Runs(temporary, house.entered)
    runs.run_many(count, workspace, host_program)
    # a keeper that lost its host a moment ago is still cleaning up
    wait_until(lambda: runs.left() == {"processes": set(), "groups": set()}, "the end of everything")
    assert len(runs.keepers) == count
    assert house.surroundings() == before
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "temporary", "workspace"]


def test_nothing_is_left_after_12_runs_a_third_of_them_killed(tmp_path: Path, house: House) -> None:
    check_nothing_left(12, tmp_path, house)


def test_nothing_is_left_of_live_sessions_whose_host_ended(tmp_path: Path, house: House) -> None:
    check_nothing_left(12, tmp_path, house, LIVE_HOST)


@pytest.mark.slow
def test_nothing_is_left_after_1000_runs_a_third_of_them_killed(tmp_path: Path, house: House) -> None:
    check_nothing_left(1000, tmp_path, house)
