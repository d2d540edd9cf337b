"""Is there an alarm before a policy that is made to collapse has lost five points of held-out success?

    python benchmarks/watch_collapse.py [--seeds 2] [--first-seed 1] [--ways WAY ...] [--keep DIR] [--results FILE]

Tiny policies are trained on rewards (`configs/feedback.toml`, arm `rlvr`) until they succeed nine times in ten. Then
they learn by distillation alone: no reward (its term is divided by a billion), no anchor, no cap on the gradient, and
the policy of now as its own teacher. Ways:

right      hints as the coach means them
shuffled   hints of other rules
elsewhere  hints at turns they are not about
frozen     `shuffled` with a learning rate of 1e-12: nothing changes, so an alarm would be a false one
rewards    no hints, the rewards go on: a control too, as long as nothing is lost
both       `configs/feedback.toml` as it is, rewards and hints, with anchor and cap

Held-out success is that of 256 worlds, measured after every update. An alarm at update n is about weights that have
seen n updates; it is in time if weights with five points less come later. What counts as an alarm is `forgotten`
(`train/forgetting_probe.py`) and those of the watch over what the policy says and does (`train/behaviour.py`); all
others are in `first_alarms`.
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

from gametape.train.config_file import read_config
from gametape.train.held_out_eval import HeldOutScore
from gametape.train.progress import TrainingProgress
from gametape.train.run_directory import RunDirectory, read_metrics
from gametape.train.training import RunCallbacks, train
from training_runs import trained

HERE = Path(__file__).parent
CONFIG = HERE.parent / "configs" / "feedback.toml"
RESULTS = HERE / "results" / "watch_collapse.json"
FALLEN = 0.05
LOST = 0.3
"""Points after which nobody has to look any longer."""

ALONE = ["rl.length=1000000000", "ttf.anchor=0", "ttf.clip_norm=1e9", 'ttf.teacher="current"', "ttf.weight=1"]
WAYS: dict[str, list[str]] = {
    "right": ALONE,
    "shuffled": [*ALONE, 'ttf.control="shuffled"'],
    "elsewhere": [*ALONE, 'ttf.control="elsewhere"'],
    "frozen": [*ALONE, 'ttf.control="shuffled"', "optim.learning_rate=1e-12"],
    "rewards": ['arm="rlvr"'],
    "both": [],
}


class Enough(Exception):
    """All is known."""


def run(changes: list[str], place: Path) -> dict[str, Any]:
    scores: list[float] = []

    def look(progress: TrainingProgress, score: HeldOutScore) -> None:
        scores.append(score.success)
        print(f"  update {progress.step}: held-out success {score.success:.3f}", flush=True)
        if scores[0] - scores[-1] > LOST:
            raise Enough

    directory = RunDirectory(place)
    with directory.lock(), suppress(Enough):
        directory.create(read_config(CONFIG, ["eval.every=1", "checkpoint.every=1000", *changes]))
        asyncio.run(train(directory.resume_config(), directory, place, RunCallbacks(score=look)))
    return told(list(read_metrics(directory.metrics)))


def told(lines: list[dict[str, Any]]) -> dict[str, Any]:
    scores = [line for line in lines if line["kind"] == "eval"]
    alarms = [line for line in lines if line["kind"] == "alarm"]
    first = next((line for line in alarms if line["name"].startswith(("watch: ", "forgotten"))), None)
    before = scores[0]["success"]
    fallen = next((line["step"] for line in scores if before - line["success"] >= FALLEN), None)
    forgotten = {line["step"]: line["forgotten"] for line in lines if line["kind"] == "update"}
    return {
        "alarm": first and {key: first[key] for key in ("step", "name", "value")},
        "fallen": fallen,
        "in_time": None if fallen is None else first is not None and first["step"] < fallen,
        "curve": [[line["step"], line["success"], forgotten.get(line["step"])] for line in scores],
        "first_alarms": {line["name"]: line["step"] for line in reversed(alarms)},
    }


def policy_of(seed: int, keep: Path) -> Path:
    """Made once; all begin with the same warm start."""
    warm = keep / "moderate-warm"
    if not (warm / "start").exists():
        trained(keep, warm.name, CONFIG, 0, ['tasks="worlds:moderate"', "episodes=1"])
    trained(keep, f"policy-{seed}", CONFIG, seed, [f'model="{warm / "start"}"', 'arm="rlvr"', "episodes=1536"])
    return keep / f"policy-{seed}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2, help="of policies")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--ways", nargs="*", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--episodes", type=int, default=512, help="of a run, unless it has collapsed before")
    parser.add_argument("--keep", type=Path, default=Path("runs") / "watch-collapse")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    report: dict[str, Any] = {"machine": {"python": platform.python_version(), "cores": os.cpu_count()}}
    for seed in range(chosen.first_seed, chosen.first_seed + chosen.seeds):
        model = f'model="{policy_of(seed, chosen.keep).absolute()}"'
        for way in chosen.ways:
            name = f"policy {seed}, {way}"
            print(name, flush=True)
            place = Path(tempfile.mkdtemp(prefix="collapse-"))
            fixed = [f"seed={seed}", f"episodes={chosen.episodes}", model]
            report[name] = run([*fixed, *WAYS[way]], place)
            shutil.rmtree(place)
            shown = {key: report[name][key] for key in ("alarm", "fallen", "in_time", "first_alarms")}
            print(f"  {json.dumps(shown)}", flush=True)
            chosen.results.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
