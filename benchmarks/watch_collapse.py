"""Does the trainer's watch alarm before a policy that is made to collapse has lost five points of held-out success?

    python benchmarks/watch_collapse.py [--policy RUN...] [--seeds 1] [--hints shuffled elsewhere none]
                                        [--rate 1e-3] [--keep DIR] [--results FILE]

A tiny policy is trained on rewards (`configs/rlvr-moderate.toml`), or runs that are there already are given. Then it
learns from hints alone: no reward (its term is divided by a billion), no anchor, no cap on the gradient, and hints that
are said at the wrong kind of thing (`shuffled`), at turns they are not about (`elsewhere`), or as the coach meant them
(`none` spoils none). Held-out success is measured after every update, on 256 worlds.

Two controls: with `--rate 1e-12` nothing is learned at all, and `healthy` has the reward, the anchor and the cap in
place. An alarm that they have too is not about the collapse, whatever `in_time` says.

The watch looks at half of the rollouts before an update learns from them, so an alarm at update n is about weights
that have seen n updates. It counts as in time if weights with five points less came later. What is usual comes from the
run's own first 200 turns that were looked at; nothing is given to it from outside. `first_alarms` has all others too.
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from gametape.core.config import RunConfig
from gametape.train.config_file import read_config
from gametape.train.held_out import Score
from gametape.train.metrics import read_metrics
from gametape.train.progress import Progress
from gametape.train.run_directory import RunDirectory
from gametape.train.training import Telling, train

HERE = Path(__file__).parent
TRAINING = HERE.parent / "configs" / "rlvr-moderate.toml"
RESULTS = HERE / "results" / "watch_collapse.json"
FALLEN = 0.05
LOST = 0.3
"""Points after which nobody has to look any longer."""

HEALTHY: dict[str, Any] = {
    "arm": "rlvr_ttf",
    "tasks": "worlds:moderate",
    "rl": {"resample": 1.0},
    "ttf": {"anchor": 0.5},
    "eval": {"every": 256, "episodes": 256},
    "checkpoint": {"every": 1000},
}


def collapsing(hints: str, rate: float) -> dict[str, Any]:
    return {
        "arm": "rlvr_ttf",
        "tasks": "worlds:moderate",
        "optim": {"learning_rate": rate},
        "rl": {"resample": 1.0, "length": 1_000_000_000},
        "ttf": {"weight": 1.0, "anchor": 0.0, "clip_norm": 1e9, "teacher": "current", "control": hints},
        "eval": {"every": 1, "episodes": 256},
        "checkpoint": {"every": 1000},
    }


class Enough(Exception):
    """All is known."""


def run(config: dict[str, Any], place: Path) -> dict[str, Any]:
    scores: list[float] = []

    def look(progress: Progress, score: Score) -> None:
        scores.append(score.success)
        print(f"  update {progress.step}: held-out success {score.success:.3f}", flush=True)
        if scores[0] - scores[-1] > LOST:
            raise Enough

    directory = RunDirectory(place)
    with directory.held(), suppress(Enough):
        directory.begin(RunConfig.model_validate(config))
        asyncio.run(train(directory.take_up(), directory, place, Telling(score=look)))
    return told(list(read_metrics(directory.metrics)))


def told(lines: list[dict[str, Any]]) -> dict[str, Any]:
    scores = [line for line in lines if line["kind"] == "eval"]
    alarms = [line for line in lines if line["kind"] == "alarm"]
    watch = next((line for line in alarms if line["name"].startswith("watch: ")), None)
    before = scores[0]["success"]
    fallen = next((line["step"] for line in scores if before - line["success"] >= FALLEN), None)
    return {
        "alarm": watch and {key: watch[key] for key in ("step", "name", "advice")},
        "fallen": fallen,
        "in_time": watch is not None and (fallen is None or watch["step"] < fallen),
        "success": [[line["step"], round(line["success"], 4)] for line in scores],
        "first_alarms": {line["name"]: line["step"] for line in reversed(alarms)},
    }


def trained(seed: int, keep: Path) -> Path:
    """A policy that is good at what it does; made once."""
    place = keep / f"policy-{seed}"
    if not (place / "checkpoints").exists():
        directory = RunDirectory(place)
        with directory.held():
            directory.begin(read_config(TRAINING, [f"seed={seed}"]))
            asyncio.run(train(directory.take_up(), directory, place, Telling()))
    return place


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", type=Path, nargs="*", help="trained runs; without, they are trained first")
    parser.add_argument("--seeds", type=int, default=3, help="of policies to train")
    parser.add_argument("--hints", nargs="*", default=["shuffled", "elsewhere", "none", "healthy"])
    parser.add_argument("--rate", type=float, default=1e-3, help="the learning rate of what is to collapse")
    parser.add_argument("--episodes", type=int, default=1536, help="of a run, unless it has collapsed before")
    parser.add_argument("--keep", type=Path, default=Path("runs") / "watch-collapse")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    report = json.loads(chosen.results.read_text()) if chosen.results.exists() else {}
    report["machine"] = {"python": platform.python_version(), "cores": os.cpu_count()}
    policies = chosen.policy or [trained(seed, chosen.keep) for seed in range(chosen.seeds)]
    for number, policy in enumerate(policies):
        for hints in chosen.hints:
            name = f"{policy.name}, {hints}, rate {chosen.rate:g}"
            print(name, flush=True)
            config = HEALTHY if hints == "healthy" else collapsing(hints, chosen.rate)
            place = Path(tempfile.mkdtemp(prefix="collapse-"))
            report[name] = run(config | {"model": str(policy), "seed": number, "episodes": chosen.episodes}, place)
            shutil.rmtree(place)
            print(f"  first alarms {report[name]['first_alarms']}, five points lost at {report[name]['fallen']}")
            chosen.results.write_text(json.dumps(report, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
