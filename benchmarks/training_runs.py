"""Runs of `gametape train` for benchmarks: kept by name, taken up again where they were cut off, one thread each."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

CURVE = ("episodes_so_far", "success", "load_bearing", "ordinary", "hinted", "flops", "seconds")
"""What is kept of each look at held-out prompts."""


def trained(
    keep: Path, name: str, config: Path, seed: int, changes: Sequence[str] = (), threads: int = 1
) -> dict[str, Any]:
    """The answer of `gametape train`, with the curve of its log. A run that is there already is not made again."""
    root, answer = keep / name, keep / f"{name}.json"
    if not answer.exists():
        command = [sys.executable, "-m", "gametape.cli.main", "train", "--json"]
        if (root / "config.toml").exists():
            command += ["--resume", str(root)]
        else:
            command += [str(config), "--out", str(root), "--seed", str(seed)]
            for change in changes:
                command += ["--set", change]
        settings = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        done = subprocess.run(
            command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
        )
        answer.write_text(done.stdout.splitlines()[-1])
    told: dict[str, Any] = json.loads(answer.read_text())
    lines = [json.loads(line) for line in (root / "metrics.jsonl").read_text().splitlines()]
    told["curve"] = [[line.get(key) for key in CURVE] for line in lines if line["kind"] == "eval"]
    told["run"] = name
    print(name, {key: told[key] for key in ("success_before", "success_after", "episodes", "seconds")}, flush=True)
    return told


def at_once(work: Callable[[Any], Any], of: Iterable[Any]) -> list[Any]:
    """One for each core."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(work, of))
