"""Whole runs from the command line alone, on a machine with a GPU: SmolLM2-135M on katas in bubblewrap sandboxes.

    python benchmarks/gpu_run.py --model DIR                            # 30 updates of each arm, one after the other
    python benchmarks/gpu_run.py --model DIR --at-once                  # both arms side by side on one GPU
    python benchmarks/gpu_run.py --model smollm2 --updates 1 --rollouts 8 --arms rlvr    # two CPU cores: does it run

Katas are put as questions, which are answered by one block of code: a model of this size hardly ever writes a call of
a tool that can be read. The families are those that SmolLM2-135M solves about half of (docs/katas.md). Each arm is one
command of `gametape train`, which is printed before it runs; nothing else is set up. Groups have eight rollouts; those
of an update are all played at once, beside the evaluation. The curve is the mean reward, and the share of rollouts that
passed, of each update; held-out success is of katas that are never trained on. How busy the GPU is comes from
`nvidia-smi`, sampled every second while the command runs. bubblewrap has to be on PATH.
"""

import argparse
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any

GROUP = 8
RESULTS = Path(__file__).parent / "results" / "gpu_run.json"
_SAMPLE_SECONDS = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="a model directory, or smollm2")
    parser.add_argument("--tasks", default="katas:all:60")
    parser.add_argument("--arms", nargs="+", default=["rlvr", "rlvr_ttf"])
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--rollouts", type=int, default=64, help="of one update, in groups of eight")
    parser.add_argument("--turn-tokens", type=int, default=256)
    parser.add_argument("--window", type=int, default=2048)
    parser.add_argument("--learning-rate", type=float, default=1e-5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-once", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="K=V", help="of every run")
    parser.add_argument("--keep", type=Path, help="where the runs are kept; else they are deleted")
    parser.add_argument("--home", type=Path, help="where prepared tasks lie; else a new one, so that preparing counts")
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    if chosen.rollouts % GROUP:
        parser.error(f"--rollouts: a multiple of {GROUP}")
    with tempfile.TemporaryDirectory(prefix="gametape-gpu-run-") as scratch:
        keep = chosen.keep or Path(scratch)
        keep.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        if chosen.at_once:
            begun = [Run(chosen, arm, keep) for arm in chosen.arms]
            rows = [run.finish() for run in begun]
        else:
            rows = [Run(chosen, arm, keep).finish() for arm in chosen.arms]
        seconds = round(time.monotonic() - began, 1)
    settings = {name: value for name, value in vars(chosen).items() if name not in ("keep", "home", "out", "model")}
    document = {"machine": machine(), "settings": settings, "seconds": seconds, "runs": rows}
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps(document, indent=1) + "\n")
    for row in rows:
        show(row)
    print(f"{seconds:.0f} s in all; written to {chosen.out}")


class Run:
    """One arm: a process of `gametape train`, watched until it ends."""

    def __init__(self, chosen: argparse.Namespace, arm: str, keep: Path) -> None:
        self.arm, self.root = arm, keep / arm
        home = chosen.home or keep / f"home-{arm}"
        self.command = command(chosen, arm, self.root, home)
        print(f"$ {shown(self.command)}", flush=True)
        self._busy = BusyGpu()
        self._log = (keep / f"{arm}.log").open("w")
        program = [sys.executable, "-m", "gametape.cli.main", *self.command[1:]]
        self._process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=self._log, text=True)

    def finish(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        said = self._process.stdout.read().splitlines()
        code = self._process.wait()
        self._log.close()
        busy = self._busy.stop()
        if code or not said:
            sys.exit(f"{self.arm}: exit code {code}\n{Path(self._log.name).read_text()[-2000:]}")
        answer = json.loads(said[-1])
        entries = [json.loads(line) for line in (self.root / "metrics.jsonl").read_text().splitlines()]
        updates = [entry for entry in entries if entry["kind"] == "update"]
        names = ("episodes", "updates", "seconds", "success_before", "success_after", "time", "tokens", "device")
        return {
            "arm": self.arm,
            "command": shown(self.command),
            **{name: answer[name] for name in names},
            "tokens_per_second": answer["tokens_per_second"],
            "gpu_busy": busy,
            "seconds_per_update": per_update(updates),
            "reward": [round(entry["reward"], 4) for entry in updates],
            "pass_rate": [round(entry["pass_rate"], 4) for entry in updates],
            "groups": [entry["groups"] for entry in updates],
            "infra_errors": sum(entry["lost"] for entry in updates),
            "hints": updates[-1]["hints"] if updates else {},
            "time_by_update": [entry["time"] for entry in updates],
        }


def command(chosen: argparse.Namespace, arm: str, root: Path, home: Path) -> list[str]:
    """What a person would type."""
    settings = {
        "episodes": chosen.updates * chosen.rollouts,
        "rl.groups": chosen.rollouts // GROUP,
        "rl.group_size": GROUP,
        "rl.resample": 1.0,
        "rl.turn_tokens": chosen.turn_tokens,
        "rl.normalizer_tokens": chosen.turn_tokens,
        "rollouts.in_flight": 2 * chosen.rollouts,
        "context.tokens": chosen.window,
        "optim.learning_rate": chosen.learning_rate,
        "optim.warmup": min(3, chosen.updates),
        "eval.every": 0,
        "eval.episodes": min(48, chosen.rollouts),
        "checkpoint.every": chosen.updates,
    }
    changes = [f"{name}={value}" for name, value in settings.items()] + chosen.set
    where = ["--out", str(root), "--home", str(home), "--seed", str(chosen.seed), "--json"]
    words = ["gametape", "train", "--model", model_for(chosen.model, home), "--tasks", chosen.tasks, "--arm", arm]
    return [*words, *where, *(word for change in changes for word in ("--set", change))]


def model_for(name: str, home: Path) -> str:
    """`smollm2` in a new home is fetched there first, by the command that fetches it."""
    if name == "smollm2" and not (home / "models" / name).is_dir():
        fetch = ["gametape", "models", "fetch", name, "--home", str(home)]
        print(f"$ {shown(fetch)}", flush=True)
        subprocess.run([sys.executable, "-m", "gametape.cli.main", *fetch[1:]], check=True, stdout=subprocess.DEVNULL)
    return name


def per_update(updates: Sequence[dict[str, Any]]) -> list[float]:
    """The first has the start of all processes in it."""
    marks = [0.0, *(entry["seconds"] for entry in updates)]
    return [round(after - before, 2) for before, after in pairwise(marks)]


class BusyGpu:
    """The share of the time in which a kernel ran, as `nvidia-smi` has it."""

    def __init__(self) -> None:
        self._program, self._done = shutil.which("nvidia-smi"), threading.Event()
        self._shares: list[float] = []
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> float | None:
        """None without a GPU."""
        self._done.set()
        self._thread.join()
        return round(sum(self._shares) / len(self._shares), 3) if self._shares else None

    def _sample(self) -> None:
        query = [self._program or "", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "--id=0"]
        while self._program and not self._done.wait(_SAMPLE_SECONDS):
            answer = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
            if answer.isdecimal():
                self._shares.append(int(answer) / 100)


def machine() -> dict[str, Any]:
    query = [shutil.which("nvidia-smi") or "true", "--query-gpu=name", "--format=csv,noheader"]
    gpu = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip() or None
    facts = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
    return {**facts, "torch": metadata.version("torch"), "gpu": gpu}


def shown(words: Sequence[str]) -> str:
    return shlex.join(words)


def show(row: dict[str, Any]) -> None:
    later = row["seconds_per_update"][1:] or row["seconds_per_update"]
    busy = "no GPU" if row["gpu_busy"] is None else f"GPU busy {row['gpu_busy']:.0%}"
    shares = ", ".join(f"{name} {share:.0%}" for name, share in row["time"].items())
    print(f"{row['arm']}: {row['updates']} updates with a gradient, {row['seconds']} s, {row['device']}")
    print(f"  held-out success {row['success_before']:.1%} before, {row['success_after']:.1%} after")
    print(f"  reward    {' '.join(f'{value:.2f}' for value in row['reward'])}")
    print(f"  pass rate {' '.join(f'{value:.2f}' for value in row['pass_rate'])}")
    first = row["seconds_per_update"][0]
    print(f"  seconds an update: {first:.1f} for the first, then {sum(later) / len(later):.1f} on average")
    print(f"  {row['tokens_per_second']:.0f} tokens sampled a second, {busy}; {shares}")
    print(f"  rollouts with an infrastructure error: {row['infra_errors']}")


if __name__ == "__main__":
    main()
