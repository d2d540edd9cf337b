"""Runs on a Ray cluster that nobody else can reach: Ray listens on every interface, and here it has the loopback of a
network of its own. `scripts/setup-ray.sh` makes the directory this looks for."""

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
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


def environment() -> Mapping[str, str]:
    """With Ray on the path. Tests of one machine share its processors: a thread for each process."""
    paths = [str(RAY), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


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
