"""What an update costs on this CPU: a GRPO step beside TRL's trainer, and what a hinted target adds to it, in one run.

    python benchmarks/train.py [--only group long ttf] [--rounds 2] [--model DIRECTORY] [--results FILE]

group  8 rollouts of up to 256 tokens after one prompt of 256
long   2 rollouts of up to 4,096 tokens that share the first 256
ttf    one rollout of 4,096 tokens, a target of 50 tokens in its middle and a hint of 17, in four ways: plain RL; the
       target with the current weights as teacher, packed as a branch; the same with a second forward over the hinted
       rollout; an averaged teacher with a second forward that ends at the target

A step is forward, backward, clipping and AdamW in float32, with gradient checkpointing, TRL's default; the steps of
`ttf` are without it, which makes the plain one cheaper and what is added to it dearer. TRL runs its own `train()` with
the batch handed to it in place of generation; that the gradient's norm is the same shows that both did the same work.
Each side has a process of its own, the sides take turns, and the first step of a process warms it up. Both count the
same tokens: those of the rollouts, prompts included. Memory is the process's peak (`peak_mb`), and how far that lies
above what it held before its first step, with libraries imported and weights loaded (`step_mb`).
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gametape.cli.shared import home_directory
from gametape.engines import smollm2
from train_batch import CASES, HINT, LENGTH, SPAN

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "train.json"
SIDES = {"gametape": "train_ours.py", "trl": "train_trl.py"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=[*CASES, "ttf"], default=[*CASES, "ttf"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    model = chosen.model or fetched()
    report: dict[str, Any] = json.loads(chosen.results.read_text()) if chosen.results.exists() else {}
    report["machine"] = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
    report["versions"] = {name: version(name) for name in ("torch", "transformers", "trl")}
    report["model"] = model.name
    for name in chosen.only:
        report[name] = hinted(model, chosen.rounds) if name == "ttf" else beside(name, model, chosen.rounds)
        chosen.results.write_text(json.dumps(report, indent=1) + "\n")


def fetched() -> Path:
    home = home_directory(None)
    smollm2.fetch_model(home, lambda _what, _done, _total: None)
    return smollm2.model_directory(home)


def beside(name: str, model: Path, rounds: int) -> dict[str, Any]:
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for number in range(rounds):
        for side in SIDES if number % 2 == 0 else reversed(SIDES):
            runs[side].append(measured(side, name, model))
            print(f"{name:6} {side:9} {runs[side][-1]}", flush=True)
    sides = {
        side: {
            "tokens_per_second": round(statistics.median(run["tokens"] / run["seconds"] for run in found), 1),
            "peak_mb": max(run["peak_mb"] for run in found),
            "step_mb": max(run["step_mb"] for run in found),
            "gradient_norm": found[0]["gradient_norm"],
        }
        for side, found in runs.items()
    }
    ratios = {what: round(sides["gametape"][what] / sides["trl"][what], 3) for what in sides["trl"]}
    print(f"{name:6} gametape / trl {ratios}", flush=True)
    return {**vars(CASES[name]), "tokens": runs["trl"][0]["tokens"], **sides, "gametape_over_trl": ratios}


def hinted(model: Path, rounds: int) -> dict[str, Any]:
    found = measured("gametape", "ttf", model, rounds)
    seconds = {way: statistics.median(each) for way, each in found["seconds"].items()}
    added = {way: round(100 * (taken / seconds["plain"] - 1), 1) for way, taken in seconds.items() if way != "plain"}
    print(f"ttf    seconds {seconds}  percent over plain {added}", flush=True)
    shape = {"length": LENGTH, "span": SPAN, "hint": HINT}
    return {**shape, "seconds": seconds, "percent_over_plain": added, "each": found["seconds"]}


def measured(side: str, what: str, model: Path, rounds: int = 1) -> dict[str, Any]:
    command = [sys.executable, str(HERE / SIDES[side]), what, str(model), str(rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


if __name__ == "__main__":
    main()
