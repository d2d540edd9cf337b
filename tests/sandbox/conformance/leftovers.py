"""What stays when a command, a host program or its keeper ends: nothing."""

import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from gametape.sandbox import cgroups
from gametape.sandbox.policy import SandboxPolicy
from tests.patience import wait_until
from tests.sandbox.conformance.bench import SMALL, Bench, promise


@promise
def what_is_left_behind_ends_and_is_no_kill(bench: Bench) -> None:
    workspace = bench.directory("workspace")
    nonce = f"{random.SystemRandom().randrange(10**9):09}"
    code = f"""
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open('born', 'w')
        time.sleep(100000)  # {nonce}
    os._exit(0)
while not os.path.exists('born'): time.sleep(0.01)
"""
    result = bench.python(code, workspace)
    assert (result.exit_code, result.killed_by) == (0, None), result
    assert _processes(nonce) == []


@promise
def orphans_are_collected(bench: Bench) -> None:
    """A command may start more processes, one after the other, than it may have at once."""
    code = """
import os, time
for _ in range(60):
    child = os.fork()
    if child == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.005)
print('done')
"""
    result = bench.python(code, limits=SMALL)
    assert (result.stdout, result.killed_by) == ("done\n", None), result


# A host program that names its keeper and runs a command which leaves a daemon behind and keeps children.
_HOST = """
import sys
from pathlib import Path
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.keeper_client import keeper
from tests.sandbox.conformance import BACKENDS
name, workspace, nonce = sys.argv[1:]
sandbox = BACKENDS[name]().start(SandboxSpec(workspace=Path(workspace)))
print(keeper().pid, flush=True)
sandbox.exec(["sh", "-c", f"(setsid sleep 1000{nonce} &); sleep 1000{nonce} & echo > up; sleep 1000{nonce}"])
"""


@promise
def nothing_is_left_behind(bench: Bench) -> None:
    """Twenty commands, some of them killed; then hosts that are killed, one of them together with its keeper."""
    if bench.name == "docker":
        return  # the engine's containers outlive a host that is killed, until the next start
    workspace = bench.directory("workspace")
    nonce = f".{random.SystemRandom().randrange(10**9):09}"
    before = _surroundings()
    limits = SMALL.model_copy(update={"wall_seconds": 0.3})
    for number in range(20):
        killed = number % 4 == 0
        script = f"(setsid sleep 1000{nonce} &); sleep 1000{nonce} & {'sleep 1000' + nonce if killed else 'true'}"
        policy = SandboxPolicy(limits=limits if killed else SMALL)
        result = bench.run("sh", "-c", script, workspace=workspace, policy=policy)
        assert result.killed_by == ("time" if killed else None), result
    keepers = [_kill_a_host(bench, workspace, nonce, with_keeper) for with_keeper in (False, True, False)]
    wait_until(lambda: not _processes(nonce), "the end of all processes")
    wait_until(lambda: not _groups(keepers), "the end of all control groups")
    assert _surroundings() == before
    assert sorted(path.name for path in bench.place.rglob("*")) == ["up", "workspace"]


def _kill_a_host(bench: Bench, workspace: Path, nonce: str, with_keeper: bool) -> str:
    (workspace / "up").unlink(missing_ok=True)
    path = os.pathsep.join([str(Path(__file__).resolve().parents[3]), *sys.path])
    host = subprocess.Popen(
        [sys.executable, "-B", "-c", _HOST, bench.name, str(workspace), nonce],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert host.stdout is not None
    keeper = host.stdout.readline().strip()
    wait_until((workspace / "up").exists, "the start of the command")
    if with_keeper:
        os.kill(int(keeper), signal.SIGKILL)
    host.kill()
    host.wait()
    host.stdout.close()
    return keeper


def _processes(nonce: str) -> list[str]:
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and nonce in _command_line(pid)]


def _groups(keepers: list[str]) -> list[str]:
    """Those of a keeper that was killed go with the next start, or now."""
    layout = cgroups.find_layout()
    if layout is None:
        return []
    cgroups.remove_orphaned_groups(layout)
    found = {name for parent in layout.parents.values() for name in os.listdir(parent)}
    return [name for name in found if name.startswith(tuple(f"gametape-{pid}-" for pid in keepers))]


def _command_line(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace") if int(pid) != os.getpid() else ""
    except OSError:
        return ""


def _surroundings() -> tuple[str, list[str]]:
    """The host's mounts, and files in shared places that bear our name."""
    names = [name for place in ("/dev/shm", tempfile.gettempdir(), "/mnt") for name in os.listdir(place)]
    return Path("/proc/self/mountinfo").read_text(), sorted(name for name in names if "runc" in name or "crun" in name)
