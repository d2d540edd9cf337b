"""Do the arms learn? Held-out success of a tiny policy in the moderate worlds, several seeds from one warm start.

    python benchmarks/learning.py [--only arms async] [--seeds 3] [--beside 3]
                                   [--episodes 4000] [--keep DIR] [--results FILE]

arms   RLVR for its whole budget of episodes; then supervised training and rejection sampling from the same weights with
       as many operations as RLVR took (2N for a token read or sampled, 4N more for one that is learned from)
async  RLVR again with a second process that samples while the first learns, for as many episodes

Success is that of the last weights at temperature 1, on prompts whose pairs of a rule and a context no training world
has. The demonstrations are those of the warm start: right at ordinary turns 99 times in 100, at rules as seldom as the
worlds' base rate says. Runs of one thread each go on at once, one for each core; `async` has the machine to itself.
Everything is saved as it ends; runs that are there already are not made again.
"""

import argparse
import json
import os
import platform
from pathlib import Path
from typing import Any

from gametape.studio.line_chart import ChartSeries, line_chart
from training_runs import at_once, trained

HERE = Path(__file__).parent
CONFIGS = HERE.parent / "configs"
RESULTS = HERE / "results" / "learning.json"
CHART = HERE.parent / "docs" / "learning.svg"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=["arms", "async"], default=["arms", "async"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--beside", type=int, help="seeds of the arms beside RLVR; as many, if not given")
    parser.add_argument("--episodes", type=int, default=4000, help="of each run of `async`")
    parser.add_argument("--keep", type=Path, default=Path("runs") / "learning")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    report = json.loads(chosen.results.read_text()) if chosen.results.exists() else {}
    report["machine"] = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}

    def save(name: str, answers: list[dict[str, Any]]) -> None:
        report[name] = answers
        chosen.results.write_text(json.dumps(report, indent=1) + "\n")

    seeds = range(chosen.seeds)
    if "arms" in chosen.only:
        start(chosen.keep)
        save("rlvr", at_once(lambda seed: arm("rlvr", seed, chosen.keep), seeds))
        for name in ("sft", "rejection"):
            save(name, at_once(lambda seed, name=name: beside(name, seed, chosen.keep, report), seeds[: chosen.beside]))
        CHART.write_text(chart(report))
    if "async" in chosen.only:
        for name, is_async in (("synchronous", "false"), ("asynchronous", "true")):
            changes = [f"episodes={chosen.episodes}", f"rl.asynchronous={is_async}", "rl.reproducible=false"]
            save(name, [timed(name, seed, chosen.keep, changes) for seed in seeds])
    print(table(report))


def arm(name: str, seed: int, keep: Path) -> dict[str, Any]:
    return run(name, name, seed, keep)


def beside(name: str, seed: int, keep: Path, report: dict[str, Any]) -> dict[str, Any]:
    """From the same weights, with as many operations."""
    flops = report["rlvr"][seed]["flops"]
    return run(name, name, seed, keep, [f"flops={flops}", "episodes=1000000"])


def timed(name: str, seed: int, keep: Path, changes: list[str]) -> dict[str, Any]:
    """With the machine to itself, and as many threads as there are cores."""
    return run(name, "rlvr", seed, keep, changes, os.cpu_count() or 1)


def run(
    name: str, arm: str, seed: int, keep: Path, changes: list[str] | None = None, threads: int = 1
) -> dict[str, Any]:
    config = CONFIGS / f"{arm}-moderate.toml"
    return trained(keep, f"{name}-{seed}", config, seed, [*(changes or []), f'model="{start(keep)}"'], threads)


def start(keep: Path) -> Path:
    """The warm start that all begin with."""
    place = keep / "warm" / "start"
    if not place.exists():
        trained(keep, "warm", CONFIGS / "rlvr-moderate.toml", 0, ["episodes=1", "eval.episodes=512"])
    return place


def chart(report: dict[str, Any]) -> str:
    """Mean and range over seeds, against episodes. Arms that stopped at their budget of operations end earlier."""
    series = []
    for name in ("rlvr", "rejection", "sft"):
        curves = [answer["curve"] for answer in report[name]]
        points = list(zip(*curves, strict=False))
        ys = [[point[1] for point in at] for at in points]
        xs = [sum(point[0] for point in at) / len(at) for at in points]
        series.append(ChartSeries(name, xs, [sum(y) / len(y) for y in ys], [min(y) for y in ys], [max(y) for y in ys]))
    return line_chart("Held-out success, moderate worlds", series, "episodes", "success at temperature 1")


def table(report: dict[str, Any]) -> str:
    rows = [
        "| arm | seed | before | after | episodes | episodes to 80 % | seconds | dropped |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name in ("rlvr", "rejection", "sft", "synchronous", "asynchronous"):
        for seed, one in enumerate(report.get(name, [])):
            rows.append(
                f"| {name} | {seed} | {one['success_before']:.1%} | {one['success_after']:.1%} | {one['episodes']} "
                f"| {one['episodes_to']['0.8'] or 'not reached'} | {one['seconds']:.0f} | {one['dropped']} |"
            )
    return "\n".join(rows)


if __name__ == "__main__":
    main()
