"""Detection by families of collapse, and false alarms on healthy work, on two halves of a corpus.

    python benchmarks/watch_detection.py chosen [--seeds 4] [--healthy 100000]
    python benchmarks/watch_detection.py held-out [--seeds 6] [--healthy 200000]
    python benchmarks/watch_detection.py logs DIRECTORY [--name outside]
    python benchmarks/watch_detection.py real PATH... [--name real]

Cuts are chosen on the first half and reported on the second. The halves differ in seeds, shapes, agents, sentences and
jobs (`watch_families.py`, `watch_work.py`). A delay is counted from where the rate of collapsed steps has reached half
of its top; where an alarm comes before that, in healthy steps, it is a false one and the log counts as not detected.
Healthy agents work for 2,500 steps each, their first 200 being the baseline.

`logs` measures logs that somebody else made: JSON lines, with a `manifest.json` beside them, `{"FILE": {"family": F,
"onset": N}}`, where N is the number of the first collapsed line, or null for a healthy log. `real` counts the alarms
on logs that are taken to be healthy. Results are kept in results/watch_detection.json.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from gametape.watch.log_reader import LoggedStep, find_logs, read_log
from gametape.watch.monitor_set import BASELINE, MonitorSet, baseline_length
from gametape.watch.observed_step import ObservedStep
from gametape.watch.report import WatchReport
from watch_agents import CHOSEN, HELD_OUT
from watch_families import COLLAPSES, Collapse, labelled

RESULTS = Path(__file__).parent / "results" / "watch_detection.json"
AGENT = 2500
"""Steps of one healthy agent."""
_SEEDS_APART = 10_000
"""Between the seeds of the halves."""


def first_alarms(steps: Iterable[tuple[int, ObservedStep]], baseline: int = BASELINE) -> Iterator[tuple[int, str, Any]]:
    """The beginning of each episode of alarms: the number of its step, the monitor and the evidence."""
    report = WatchReport(MonitorSet(baseline))
    for number, seen in steps:
        for episode in report.observe(LoggedStep(Path("log"), number, seen)):
            yield number, episode.alarm.monitor, episode.alarm.evidence


def measure_collapses(half: str, seeds: range, only: str | None) -> dict[str, Any]:
    """By family: how many logs are detected in time, after how many steps, and by which monitors."""
    found: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for shape in COLLAPSES:
        if shape.half != half or (only and only not in shape.family):
            continue
        runs = [_first(shape, seed) for seed in seeds]
        for delay, monitor in runs:
            found[shape.family]["delays"].append(delay)
            found[shape.family]["monitors"].append(monitor)
        said = " ".join(str(delay) for delay, _ in runs)
        print(f"{shape.family:<20} {shape.shape:<22} {said:<32} {dict(Counter(name for _, name in runs))}", flush=True)
    rows = {family: _row(**told) for family, told in found.items()}
    everything = _row([d for told in found.values() for d in told["delays"]], [])
    _print(rows | {"all": everything})
    return {"families": rows, "all": everything}


def _first(shape: Collapse, seed: int) -> tuple[int | None, str]:
    for number, monitor, _ in first_alarms(shape.steps(seed)):
        if number < -(shape.rise // 2 + shape.lead):
            return None, f"FALSE {monitor}"
        return max(number, 0), monitor
    return None, "none"


def _row(delays: list[int | None], monitors: list[str]) -> dict[str, Any]:
    seen = [delay for delay in delays if delay is not None]
    row: dict[str, Any] = {
        "logs": len(delays),
        "within_50": sum(delay <= 50 for delay in seen),
        "within_200": sum(delay <= 200 for delay in seen),
        "median": statistics.median(seen) if seen else None,
    }
    return row | ({"monitors": dict(Counter(monitors))} if monitors else {})


def _print(rows: dict[str, dict[str, Any]]) -> None:
    for family, row in rows.items():
        print(f"{family:<24} {row['within_50']:>4}/{row['within_200']:>4} of {row['logs']:>4}, median {row['median']}")


def measure_healthy(half: str, steps: int, first_seed: int) -> dict[str, Any]:
    """False alarms on healthy work, by monitor and kind of job."""
    alarms: list[tuple[str, str]] = []
    cpu = time.process_time()
    agents = max(1, steps // AGENT)
    for seed in range(first_seed, first_seed + agents):
        kinds: list[str] = []
        for number, monitor, evidence in first_alarms(_kept(half, seed, kinds)):
            alarms.append((monitor, kinds[-1]))
            print(f"healthy {seed}: step {number} ({kinds[-1]}): {monitor}: {str(evidence)[:160]}", flush=True)
    seconds = time.process_time() - cpu
    told = {
        "agents": agents,
        "steps": agents * AGENT,
        "alarms": len(alarms),
        "per_50000": round(50_000 * len(alarms) / (agents * AGENT), 2),
        "by": dict(Counter(f"{monitor}: {kind.strip()}" for monitor, kind in alarms)),
    }
    print(f"{told} in {seconds:.0f} s")
    return told


def _kept(half: str, seed: int, kinds: list[str]) -> Iterator[tuple[int, ObservedStep]]:
    for number, (kind, step) in enumerate(islice(labelled(half, seed), AGENT)):
        kinds[:] = [kind]
        yield number, step


def halves(arguments: argparse.Namespace) -> None:
    half = CHOSEN if arguments.what == "chosen" else HELD_OUT
    first = arguments.first_seed if arguments.first_seed is not None else 0 if half == CHOSEN else _SEEDS_APART
    found: dict[str, Any] = {}
    if arguments.seeds:
        found |= measure_collapses(half, range(first, first + arguments.seeds), arguments.only)
    if arguments.healthy:
        found["healthy"] = measure_healthy(half, arguments.healthy, first)
    if not arguments.only and arguments.seeds and arguments.healthy:
        save(half, found)


def logs(arguments: argparse.Namespace) -> None:
    """Logs of somebody else's, as `gametape watch` reads them."""
    (directory,) = arguments.paths
    manifest = json.loads((directory / "manifest.json").read_text())
    delays: dict[str, list[int | None]] = defaultdict(list)
    monitors: dict[str, list[str]] = defaultdict(list)
    healthy = {"logs": 0, "steps": 0, "alarms": 0}
    for name, told in sorted(manifest.items()):
        steps = [(each.step, each.observed) for each in read_log(directory / name) if each.observed]
        alarms = [(at, monitor) for at, monitor, _ in first_alarms(steps, baseline_length(len(steps)))]
        onset = told.get("onset")
        before = [alarm for alarm in alarms if onset is None or alarm[0] < onset]
        print(f"{name}: onset {onset}: {alarms[:5]}")
        healthy["steps"] += len(steps) if onset is None else min(onset - 1, len(steps))
        healthy["alarms"] += len(before)
        if onset is None:
            healthy["logs"] += 1
            continue
        after = next((alarm for alarm in alarms if alarm[0] >= onset), None)
        delays[told["family"]].append(after[0] - onset if after else None)
        monitors[told["family"]].append(after[1] if after else "none")
    rows = {family: _row(delays[family], monitors[family]) for family in delays}
    everything = _row([delay for row in delays.values() for delay in row], [])
    _print(rows | {"all": everything})
    print(healthy)
    save(arguments.name or "outside", {"families": rows, "all": everything, "healthy": healthy})


def real(arguments: argparse.Namespace) -> None:
    """Alarms on logs of real runs."""
    found: dict[str, Any] = {"logs": 0, "steps": 0, "alarms": []}
    for path in arguments.paths:
        files = find_logs([path]).files
        steps = [(each.step, each.observed) for file in files for each in read_log(file) if each.observed]
        found["logs"] += len(files)
        found["steps"] += len(steps)
        for number, monitor, evidence in first_alarms(steps, baseline_length(len(steps))):
            found["alarms"].append({"log": path.name, "step": number, "monitor": monitor})
            print(f"{path}: step {number}: {monitor}: {str(evidence)[:300]}")
    print(f"{found['steps']} steps of {found['logs']} logs: {len(found['alarms'])} alarms")
    save(arguments.name or "real", found)


def save(name: str, found: dict[str, Any]) -> None:
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    kept["machine"] = {"python": platform.python_version(), "cores": os.cpu_count()}
    kept[name] = found
    RESULTS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("chosen", "held-out", "logs", "real"))
    parser.add_argument("paths", type=Path, nargs="*")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first-seed", type=int, help="of the seeds, which follow it")
    parser.add_argument("--healthy", type=int, default=100_000)
    parser.add_argument("--only", help="a part of a family's name")
    parser.add_argument("--name")
    arguments = parser.parse_args()
    {"chosen": halves, "held-out": halves, "logs": logs, "real": real}[arguments.what](arguments)


if __name__ == "__main__":
    main()
