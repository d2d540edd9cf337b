"""Do the monitors see collapses in time, keep quiet on natural text, keep their promise, and cost little?

    python benchmarks/watch.py collapses [--seeds 5]
    python benchmarks/watch.py natural [--texts FILE...] [--name "natural, unseen"] [--steps 5000000]
    python benchmarks/watch.py guarantee [--runs 10000]
    python benchmarks/watch.py throughput
    python benchmarks/watch.py memory [--steps 10000000]
    python benchmarks/watch.py training --run RUN

`natural` reads system changelogs, licences and the history of this repository, each text once and on its own, with its
own first 200 steps as the baseline, as plain text, a line a step; or, with `--texts`, whatever is given, and `--name`
keeps the result apart. `guarantee` draws outcomes at exactly the tolerated rate, the worst that is promised for, and a
second time with a baseline of 200 steps to calibrate on; a run that lasts longer than five times the promise counts as
that long. `training` looks once more at what the watch saw of a training run, and says what share of its time that
took. What each subcommand prints is kept in results/watch.json.
"""

import argparse
import gzip
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

import watch_logs
from gametape.record.json_lines import read_lines
from gametape.train.alarms import BehaviourMonitor
from gametape.train.run_directory import read_metrics
from gametape.watch.calibrated_monitor import monitor_specs
from gametape.watch.detector import ALTERNATIVES, tolerated_rate
from gametape.watch.log_reader import LoggedStep, read_log
from gametape.watch.monitor_set import BASELINE, STEPS_TO_FALSE_ALARM, MonitorSet
from gametape.watch.observed_step import ObservedStep
from watch_logs import HEALTHY, SHAPES, Shape, healthy

RESULTS = Path(__file__).parent / "results" / "watch.json"
GOAL = 50


def collapses(arguments: argparse.Namespace) -> dict[str, Any]:
    """For each shape: steps from where the generating rate first exceeds what the alarming monitor tolerates."""
    found: dict[str, Any] = {}
    for shape in SHAPES:
        runs = [_first_alarm(shape, seed) for seed in range(arguments.seeds)]
        delays = [run["delay"] for run in runs]
        kept = [_in_time(shape, run) for run in runs]
        found[shape.name] = {
            "monitors": dict(Counter(run["monitor"] for run in runs)),
            "delays": delays,
            "rate_at_alarm": [run["rate"] for run in runs],
            "in_time": sum(kept),
            "of": len(runs),
        }
        print(f"{shape.name:<40} {found[shape.name]['monitors']} delays {delays} in time {sum(kept)}/{len(kept)}")
        save("collapses", found)
    return found


def _first_alarm(shape: Shape, seed: int) -> dict[str, Any]:
    watch = MonitorSet()
    rates = []
    for number, (rate, seen) in enumerate(shape.steps(seed, HEALTHY + (12_000 if shape.slow else 1500))):
        rates.append(rate)
        alarms = watch.update(seen)
        if alarms:
            name = alarms[0].monitor
            (tolerated,) = [channel.tolerated or 0.0 for channel in watch.channels if channel.spec.name == name]
            began = next((at for at, earlier in enumerate(rates) if earlier > tolerated), number)
            if number < HEALTHY:
                return {"monitor": f"FALSE {name}", "delay": None, "rate": 0.0, "tolerated": tolerated}
            return {"monitor": name, "delay": number - began, "rate": round(rate, 3), "tolerated": tolerated}
    return {"monitor": "none", "delay": None, "rate": round(rates[-1], 3), "tolerated": 0.0}


def _in_time(shape: Shape, run: dict[str, Any]) -> bool:
    """Within fifty steps, or, for what comes slowly, before the rate is twice what is tolerated."""
    if run["delay"] is None:
        return False
    return bool(run["rate"] < 2 * run["tolerated"] if shape.slow else run["delay"] <= GOAL)


def natural(arguments: argparse.Namespace) -> dict[str, Any]:
    """Alarms on text that is merely repetitive."""
    found: dict[str, Any] = {"files": 0, "steps": 0, "alarms": []}
    cpu = time.process_time()
    for name, steps in _texts(arguments.texts or [], arguments.seed):
        watch = MonitorSet()
        alarmed: set[str] = set()
        for placed in steps:
            found["steps"] += 1
            for alarm in watch.update(placed.observed) if placed.observed else []:
                if alarm.monitor not in alarmed:
                    alarmed.add(alarm.monitor)
                    found["alarms"].append({"file": Path(name).name, "step": placed.step, "monitor": alarm.monitor})
                    print(f"{name}: line {placed.step}: {alarm.monitor}: {alarm.evidence}"[:400])
        found["files"] += 1
        found["steps_per_second"] = round(found["steps"] / (time.process_time() - cpu))
        save(arguments.name, found)
        if found["steps"] >= arguments.steps:
            break
    print(f"{found['steps']} steps of {found['files']} texts: {len(found['alarms'])} alarms")
    return found


def _texts(given: Sequence[Path], seed: int) -> Iterator[tuple[str, Iterator[LoggedStep]]]:
    files = list(given)
    if not files:
        root = Path("/usr/share")
        real = {file.resolve() for file in [*root.glob("doc/*/changelog*"), *root.glob("common-licenses/*")]}
        texts = {_text_of(file): file for file in sorted(real, reverse=True) if file.is_file()}
        files = sorted(file for text, file in texts.items() if text.count(b"\n") >= 2 * BASELINE)
        random.Random(seed).shuffle(files)
        yield "the history of this repository", _log()
    for file in files:
        yield str(file), read_log(file, "text")


def _text_of(file: Path) -> bytes:
    data = file.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def _log() -> Iterator[LoggedStep]:
    said = subprocess.run(["git", "log", "--format=%B%x00"], cwd=watch_logs.ROOT, capture_output=True, check=False)
    for number, message in enumerate(said.stdout.decode().split("\0"), start=1):
        yield LoggedStep(Path("git log"), number, ObservedStep(message.strip()) if message.strip() else None)


def guarantee(arguments: argparse.Namespace) -> dict[str, Any]:
    """The mean number of steps to the first false alarm of all detectors together, in simulation."""
    found = {}
    monitors = len(monitor_specs())
    for rate in (0.1, 0.3, 0.6):
        tolerated = np.full(arguments.runs, rate)
        found[f"at the tolerated rate {rate}"] = _mean_time(tolerated, rate, monitors, arguments)
        save("guarantee", found)
    for rate in (0.02, 0.2, 0.6):
        rng = random.Random(arguments.seed)
        calibrated = [
            tolerated_rate([rng.random() < rate for _ in range(BASELINE)], 0.01) for _ in range(arguments.runs)
        ]
        found[f"calibrated on {BASELINE} steps at {rate}"] = _mean_time(np.array(calibrated), rate, monitors, arguments)
        save("guarantee", found)
    return found


def _mean_time(tolerated_R: Any, rate: float, monitors: int, arguments: argparse.Namespace) -> dict[str, float]:
    """R runs of one detector, against the threshold of all. The first of independent detectors has not alarmed by a
    step if none has, so the share of runs that last, to the power of their number, is the share for all together."""
    rng = np.random.default_rng(arguments.seed)
    runs, longest = len(tolerated_R), 5 * STEPS_TO_FALSE_ALARM
    threshold = STEPS_TO_FALSE_ALARM * monitors
    alternatives_AR = tolerated_R + np.array(ALTERNATIVES)[:, None] * (1 - tolerated_R)
    yes_AR, no_AR = alternatives_AR / tolerated_R, (1 - alternatives_AR) / (1 - tolerated_R)
    statistic_AR = np.zeros_like(yes_AR)
    alive_R = np.ones(runs, dtype=bool)
    lasting = []
    for _ in range(longest):
        lasting.append(alive_R.mean() ** monitors)
        statistic_AR = np.where(rng.random(runs) < rate, yes_AR, no_AR) * (statistic_AR + 1)
        alive_R &= statistic_AR.mean(axis=0) < threshold
    told = {"runs": runs, "detectors": monitors, "mean_steps": sum(lasting), "alarmed_by_1000": 1 - lasting[1000]}
    print(f"rate {rate}: mean {told['mean_steps']:.0f} steps (promised {STEPS_TO_FALSE_ALARM})")
    return told


def throughput(_arguments: argparse.Namespace) -> dict[str, Any]:
    """Steps per second of one core, every monitor on, on steps with text, tool calls and results."""
    found = {}
    for name, tools in (("text", False), ("text and tool calls", True)):
        rng = random.Random(0)
        pool = [healthy(rng, number, tools) for number in range(30_000)]
        rates = []
        for _ in range(3):
            watch = MonitorSet()
            fresh = [ObservedStep(s.text, s.actions, s.result, time=s.time, cost=s.cost) for s in pool]
            cpu = time.process_time()
            for seen in fresh:
                watch.update(seen)
            rates.append(len(fresh) / (time.process_time() - cpu))
        words = statistics.mean(len(seen.text.split()) for seen in pool)
        found[name] = {"steps_per_second": round(statistics.median(rates)), "words_per_step": round(words, 1)}
        print(f"{name}: {found[name]}")
        save("throughput", found)
    return found


def memory(arguments: argparse.Namespace) -> dict[str, Any]:
    """Memory in use after each tenth of a very long log, half of it collapsed, every word new now and then."""
    rng = random.Random(0)
    pool = [healthy(rng, number, tools=True) for number in range(5000)]
    watch = MonitorSet()
    found: dict[str, Any] = {"steps": 0, "resident_mb": []}
    for number in range(arguments.steps):
        seen = pool[rng.randrange(len(pool))]
        text = f"{seen.text} word{number} \\tic{number}" if number // 1000 % 2 else "Standing by."
        session = f"session {number // 40}"
        watch.update(ObservedStep(text, seen.actions, seen.result, time=60.0 * number, cost=seen.cost, session=session))
        if (number + 1) % (arguments.steps // 10) == 0:
            found["steps"] = number + 1
            found["resident_mb"].append(_resident_mb())
            print(f"{number + 1} steps: {found['resident_mb'][-1]} MB")
            save("memory", found)
    return found


def training(arguments: argparse.Namespace) -> dict[str, Any]:
    """CPU seconds of looking at and writing down the turns of a run, beside the seconds that the run took."""
    said = list(read_lines(arguments.run / "behaviour.jsonl"))
    updates = [line for line in read_metrics(arguments.run / "metrics.jsonl") if line["kind"] == "update"]
    with tempfile.TemporaryDirectory() as scratch:
        behaviour = BehaviourMonitor(Path(scratch) / "behaviour.jsonl")
        cpu = time.process_time()
        for step, turns in groupby(said, key=itemgetter("step")):
            behaviour.observe(step, [list(turns)])
        took = time.process_time() - cpu
    found = {
        "episodes": updates[-1]["episodes"],
        "turns": len(said),
        "seconds": round(took, 3),
        "seconds_of_run": updates[-1]["seconds"],
        "share": round(took / updates[-1]["seconds"], 4),
        "ms_per_episode": round(1000 * took / updates[-1]["episodes"], 3),
    }
    print(found)
    save("training", found)
    return found


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * resource.getpagesize() / 1e6, 1)


def save(name: str, found: dict[str, Any]) -> None:
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    kept["machine"] = {"python": platform.python_version(), "cores": os.cpu_count()}
    kept[name] = found
    RESULTS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("collapses", "natural", "guarantee", "throughput", "memory", "training"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--texts", type=Path, nargs="*")
    parser.add_argument("--name", default="natural")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--run", type=Path, help="a training run")
    arguments = parser.parse_args()
    if arguments.steps is None:
        arguments.steps = 10_000_000 if arguments.what == "memory" else 5_000_000
    globals()[arguments.what](arguments)


if __name__ == "__main__":
    main()
