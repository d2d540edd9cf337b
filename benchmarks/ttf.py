"""What targeted textual feedback is worth: rewards alone, rewards and hints, and the controls, from the same weights.

    python benchmarks/ttf.py [--only REGIME ... controls] [--seeds 6] [--control-seeds 3] [--keep DIR] [--results FILE]

Regimes:
easy-tools       8 turns, one of which turns on a rule that the expert of the warm start keeps to half the time
moderate-tools  12 turns, one of which turns on a rule that the expert keeps to a fifth of the time
starved-tools   the same with three such turns, so that few rollouts succeed; from the same warm start
barren-tools    the same with five, so that none does

Arms: `rlvr`, verified rewards alone; `ttf`, and the hinted teacher's choice distilled at the turns that the coach
found; `resample`, and a turn sampled after the same hint imitated there in place of it. Controls, in the moderate
regime, each `ttf` with one thing taken away: a `neutral` hint; a `shuffled` one, of another rule (all of them, or 10 or
30 in 100); the hint `elsewhere`, at a turn that is no target; and a `penalty` on what was done there, without any hint.

Success is that of held-out prompts at temperature 1: no training world has their pairs of a rule and a context.
Episodes are all rollouts sampled. What the coach reads and samples is in the operations (2N for a token read or
sampled, 4N more for one learned from). Runs of one thread each go on at once, one for each core. Everything is saved as
it ends; runs that are there already are not made again. What was expected, before any of it was run, is in
docs/feedback-experiment.md.
"""

import argparse
import json
import os
import platform
import statistics
from itertools import product
from pathlib import Path
from typing import Any

from gametape.studio.line_chart import ChartSeries, line_chart
from training_runs import CURVE, at_once, trained

HERE = Path(__file__).parent
CONFIG = HERE.parent / "configs" / "feedback.toml"
RESULTS = HERE / "results" / "ttf.json"
CHARTS = HERE.parent / "docs"
BUDGETS = {"easy-tools": 256, "moderate-tools": 512, "starved-tools": 640, "barren-tools": 640}
WARM = {"easy-tools": "easy", "moderate-tools": "moderate", "starved-tools": "moderate", "barren-tools": "moderate"}
"""The worlds of each one's warm start."""
TTF = ['arm="rlvr_ttf"']
ARMS: dict[str, list[str]] = {
    "rlvr": ['arm="rlvr"'],
    "ttf": TTF,
    "resample": [*TTF, 'ttf.learn="resample"'],
}
CONTROLS: dict[str, list[str]] = {
    "neutral": [*TTF, 'ttf.control="neutral"'],
    "shuffled": [*TTF, 'ttf.control="shuffled"'],
    "shuffled-10": [*TTF, 'ttf.control="shuffled"', "ttf.spoiled=0.1"],
    "shuffled-30": [*TTF, 'ttf.control="shuffled"', "ttf.spoiled=0.3"],
    "elsewhere": [*TTF, 'ttf.control="elsewhere"'],
    "penalty": [*TTF, 'ttf.learn="penalty"'],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=[*BUDGETS, "controls"], default=[*BUDGETS, "controls"])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--control-seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=10)
    parser.add_argument("--keep", type=Path, default=Path("runs") / "ttf")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    report: dict[str, Any] = json.loads(chosen.results.read_text()) if chosen.results.exists() else {}
    report["machine"] = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
    report["curve"] = CURVE
    for name in chosen.only:
        regime, arms, seeds = name, ARMS, range(chosen.first_seed, chosen.first_seed + chosen.seeds)
        if name == "controls":
            regime, arms, seeds = (
                "moderate-tools",
                CONTROLS,
                range(chosen.first_seed, chosen.first_seed + chosen.control_seeds),
            )
        start(regime, chosen.keep)
        order = product(seeds, arms)
        found = at_once(lambda job: one(regime, *job, {**ARMS, **CONTROLS}[job[1]], chosen.keep), order)  # noqa: B023
        told = report.setdefault(regime, {})
        for arm in arms:
            told[arm] = [answer for answer in found if answer["arm"] == arm]
        chosen.results.write_text(json.dumps(report, indent=1) + "\n")
        if name != "controls":
            (CHARTS / f"feedback-{name}.svg").write_text(chart(name, told))
    print(table(report))
    print(paired(report))


def start(regime: str, keep: Path) -> Path:
    name = f"{WARM[regime]}-warm"
    if not (keep / name / "start").exists():
        trained(keep, name, CONFIG, 0, [f'tasks="worlds:{WARM[regime]}"', "episodes=1"])
    return keep / name / "start"


def one(regime: str, seed: int, arm: str, changes: list[str], keep: Path) -> dict[str, Any]:
    """The seed gives the prompts, which are the same in every arm, and the held-out ones."""
    model = f'model="{start(regime, keep)}"'
    fixed = [f'tasks="worlds:{regime}"', f"episodes={BUDGETS[regime]}", model]
    return {**trained(keep, f"{regime}-{arm}-{seed}", CONFIG, seed, [*fixed, *changes]), "arm": arm, "seed": seed}


def chart(regime: str, told: dict[str, Any]) -> str:
    series = []
    for name in ARMS:
        points = list(zip(*(answer["curve"] for answer in told[name]), strict=False))
        ys = [[point[1] for point in at] for at in points]
        xs = [sum(point[0] for point in at) / len(at) for at in points]
        series.append(ChartSeries(name, xs, [sum(y) / len(y) for y in ys], [min(y) for y in ys], [max(y) for y in ys]))
    return line_chart(f"Held-out success, {regime} worlds", series, "episodes", "success at temperature 1")


def table(report: dict[str, Any]) -> str:
    """Means over seeds. A run that did not get there is only known to need more than its budget."""
    rows = [
        "| regime | arm | seeds | episodes to 80 %, each seed | reached | success before | after | at rules "
        "| at other turns | 10^9 operations |",
        "|---|---|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for regime, budget in BUDGETS.items():
        for arm, answers in report.get(regime, {}).items():
            reached = [answer["episodes_to"]["0.8"] for answer in answers]
            each = ", ".join(str(at) if at else f"> {budget}" for at in reached)
            last = [dict(zip(CURVE, answer["curve"][-1], strict=True)) for answer in answers]
            means = [statistics.mean(one[key] for one in last) for key in ("success", "load_bearing", "ordinary")]
            before = statistics.mean(answer["success_before"] for answer in answers)
            flops = statistics.mean(answer["flops"] for answer in answers) / 1e9
            shown = " | ".join(f"{value:.1%}" for value in (before, *means))
            got = f"{sum(at is not None for at in reached)} of {len(reached)}"
            rows.append(f"| {regime} | {arm} | {len(answers)} | {each} | {got} | {shown} | {flops:.0f} |")
    return "\n".join(rows)


def paired(report: dict[str, Any]) -> str:
    """Success at the end of the budget against `rlvr`, seed by seed: the mean difference, and how often chance alone,
    which could as well have changed the signs, would give one as large (all patterns of signs, two-sided)."""
    rows = ["| regime | arm | seeds | mean difference to rlvr | p |", "|---|---|---:|---:|---:|"]
    for regime in (name for name in BUDGETS if "rlvr" in report.get(name, {})):
        plain = {answer["seed"]: answer["success_after"] for answer in report[regime]["rlvr"]}
        for arm, answers in report[regime].items():
            apart = [one["success_after"] - plain[one["seed"]] for one in answers if one["seed"] in plain]
            if arm == "rlvr" or not apart:
                continue
            found = abs(sum(apart))
            flipped = [
                abs(sum(sign * one for sign, one in zip(signs, apart, strict=True))) >= found - 1e-12
                for signs in product((1, -1), repeat=len(apart))
            ]
            shown = f"{100 * statistics.mean(apart):+.1f} points | {sum(flipped) / len(flipped):.3f}"
            rows.append(f"| {regime} | {arm} | {len(apart)} | {shown} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
