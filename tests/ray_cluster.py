"""Runs on a Ray cluster that nobody else can reach: Ray listens on every interface, and here it has the loopback of a
network of its own. `scripts/setup-ray.sh` makes the directory this looks for."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NODES = ("10.213.7.1", "10.213.7.2")
PORT = 6379
TOKEN = secrets.token_hex(32)
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gametape"
RAY = Path(os.environ.get("GAMETAPE_RAY") or CACHE / "ray")


def missing() -> str:
    """What this machine lacks; nothing where all is there."""
    if not (RAY / ".ready").exists():
        return f"no Ray at {RAY}: run scripts/setup-ray.sh"
    if os.geteuid() or not shutil.which("ip"):
        return "only root can make a network of its own, with ip of iproute2"
    return ""


def require_ray() -> None:
    """Skip the test where it cannot run."""
    if why := missing():
        pytest.skip(why)


@contextmanager
def own_network() -> Iterator[str]:
    """The name of a network that has nothing but a loopback."""
    name = f"gametape-{secrets.token_hex(3)}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


@contextmanager
def two_networks() -> Iterator[tuple[str, str]]:
    """Two of them, whose only way out is the cable between them; their addresses are `NODES`."""
    with own_network() as first, own_network() as second:
        ends = [f"gt{secrets.token_hex(4)}" for _ in range(2)]
        add = ["ip", "link", "add", ends[0], "netns", first, "type", "veth", "peer", "name", ends[1], "netns", second]
        subprocess.run(add, check=True)
        for name, end, address in zip((first, second), ends, NODES, strict=True):
            subprocess.run(["ip", "-n", name, "address", "add", f"{address}/24", "dev", end], check=True)
            subprocess.run(["ip", "-n", name, "link", "set", end, "up"], check=True)
        yield first, second


def start_node(network: str, address: str, cpus: int, head: str = "") -> None:
    """A node of a cluster that stays until its processes are killed."""
    role = ["--address", f"{head}:{PORT}"] if head else ["--head", "--port", str(PORT), "--include-dashboard=false"]
    command = ["ip", "netns", "exec", network, sys.executable, "-m", "ray.scripts.scripts", "start", *role]
    command += ["--node-ip-address", address, "--num-cpus", str(cpus), "--object-store-memory", str(100 << 20)]
    subprocess.run([*command, "--disable-usage-stats"], env=environment(), cwd=ROOT, check=True, capture_output=True)


def processes_of(network: str) -> list[int]:
    """All that run in it."""
    told = subprocess.run(["ip", "netns", "pids", network], check=True, capture_output=True, text=True)
    return [int(pid) for pid in told.stdout.split()]


def kill_node(network: str) -> None:
    """As if its power were cut."""
    for pid in processes_of(network):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def environment() -> Mapping[str, str]:
    """With Ray on the path, a token of these tests alone, nodes that are missed soon, and a thread for each process,
    because all of them share one machine."""
    paths = [str(RAY), *filter(None, [os.environ.get("PYTHONPATH")])]
    quick = {"initial_delay_ms": 1000, "period_ms": 500, "timeout_ms": 1000, "failure_threshold": 5}
    return {
        **os.environ,
        **{f"RAY_health_check_{name}": str(value) for name, value in quick.items()},
        "RAY_memory_monitor_refresh_ms": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": TOKEN,
        "PYTHONPATH": os.pathsep.join(paths),
        "OMP_NUM_THREADS": "1",
    }


def start_train(network: str, *words: str | Path) -> "subprocess.Popen[str]":
    """`gametape train` in this network. Its process is the driver itself."""
    command: Sequence[str] = ["ip", "netns", "exec", network, sys.executable, "-m", "gametape.cli.main", "train"]
    return subprocess.Popen(
        [*command, *map(str, words)],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
