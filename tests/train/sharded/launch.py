"""Ranks as processes of their own, on gloo and this machine's loopback."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import torch.distributed as dist

from gametape.train.ranks import Ranks
from gametape.train.shards import open_mesh

_TIMEOUT_SECONDS = 600


def run_ranks(module: str, world: int, *arguments: str | Path, ends: int = 0) -> None:
    """Run a module as every rank, and fail with the output of the first that does not end as it should."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(world), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", module, *map(str, arguments)]
    ranks = [
        subprocess.Popen(
            command,
            env={**os.environ, **shared, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(world)
    ]
    try:
        outputs = [rank.communicate(timeout=_TIMEOUT_SECONDS)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    failed = [output for rank, output in zip(ranks, outputs, strict=True) if rank.returncode != ends]
    assert not failed, failed[0][-4000:]


def open_ranks(replicas: int = 1) -> Ranks:
    """In a process that `run_ranks` started."""
    dist.init_process_group("gloo")
    mesh = open_mesh("cpu", dist.get_world_size(), replicas)
    return Ranks(mesh, background=dist.new_group(backend="gloo"))
