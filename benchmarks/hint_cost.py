"""What an episode with hints costs beside one without, part by part, and what each way to save brings.

    python benchmarks/hint_cost.py [--tasks worlds:starved-tools] [--model RUN] [--episodes 96] [--only NAME ...]
                                   [--keep DIR] [--results FILE]

Each row is a run of `gametape train` from the same weights with the same prompts. Parts are taken from the counters of
the run, as operations of one episode over those of `rlvr`: sampling (what engines read and sampled), the coach (what it
read or sampled), reading (what the learner read without a gradient: the teacher, the start, prefixes) and learning (2N
forward and 4N backward for a token with a gradient). Without --model a tiny policy is warm-started first.
"""

import argparse
import json
import os
import platform
from pathlib import Path
from typing import Any

from training_runs import at_once, trained

HERE = Path(__file__).parent
CONFIG = HERE.parent / "configs" / "feedback.toml"
RESULTS = HERE / "results" / "hint_cost.json"
TTF = ['arm="rlvr_ttf"']
LEARNER = 'ttf.gap_reader="learner"'
ONE = "ttf.annotated_per_group=1"
CUT = "ttf.prefix_gradient=false"
ROWS: dict[str, list[str]] = {
    "rlvr": ['arm="rlvr"'],
    "ttf, as published": TTF,
    "gaps read by the learner": [*TTF, LEARNER],
    "and one rollout of a group": [*TTF, LEARNER, ONE],
    "and no gradient through the prefix": [*TTF, LEARNER, ONE, CUT],
    "and half of the targets once more": [*TTF, LEARNER, ONE, CUT, "ttf.replay=0.5"],
    "and no target twice": [*TTF, LEARNER, ONE, CUT, "ttf.replay=0.0"],
    "and the policy its own teacher, no anchor": [
        *TTF,
        LEARNER,
        ONE,
        CUT,
        "ttf.replay=0.0",
        'ttf.teacher="current"',
        "ttf.anchor=0.0",
    ],
    "resample, one rollout, no prefix": [*TTF, 'ttf.objective="resample"', LEARNER, ONE, CUT, "ttf.replay=0.5"],
    "opsd, one rollout": ['arm="rlvr_opsd"', LEARNER, ONE, "ttf.replay=0.0"],
    "two targets of one rollout, no prefix, half of them once more": [
        *TTF,
        LEARNER,
        ONE,
        CUT,
        "ttf.replay=0.5",
        "ttf.targets_per_rollout=2",
    ],
}
PARTS = ("sampling", "coach", "reading", "learning")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="worlds:starved-tools")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--episodes", type=int, default=96)
    parser.add_argument("--only", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--warm", type=int, default=640, help="demonstrations of the warm start")
    parser.add_argument("--keep", type=Path, default=Path("runs") / "hint-cost")
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    chosen.keep.mkdir(parents=True, exist_ok=True)
    fixed = ["eval.every=0", "eval.episodes=1"]
    if chosen.model is None:
        changes = [f'tasks="{chosen.tasks}"', f"warm.episodes={chosen.warm}", "episodes=1", *fixed]
        trained(chosen.keep, "warm", CONFIG, 0, changes)
    model = chosen.model or chosen.keep / "warm"
    fixed += [f'model="{model}"', f'tasks="{chosen.tasks}"', f"episodes={chosen.episodes}"]

    def row(name: str) -> dict[str, float]:
        run = f"row-{list(ROWS).index(name)}"
        told = trained(chosen.keep, run, CONFIG, 1, [*fixed, *ROWS[name]])
        return parts_of(told, chosen.keep / run / "metrics.jsonl")

    rows = dict(zip(chosen.only, at_once(row, chosen.only), strict=True))
    machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
    document = {"machine": machine, "tasks": chosen.tasks, "episodes": chosen.episodes, "tokens": rows}
    chosen.results.write_text(json.dumps(document, indent=1) + "\n")
    print(table(rows))


def parts_of(told: dict[str, Any], log: Path) -> dict[str, float]:
    """Tokens of each part, in units of one forward, an episode."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    updates = [line for line in lines if line["kind"] == "update"]
    learned, passed = (sum(line[key] for line in updates) for key in ("tokens", "forwarded"))
    tokens, episodes = told["tokens"], told["episodes"]
    sampling = tokens["generated"] + tokens["forwarded"] - passed
    parts = (sampling, tokens["coach"], passed - learned, 3 * learned)
    return dict(zip(PARTS, (part / episodes for part in parts), strict=True))


def table(rows: dict[str, dict[str, float]]) -> str:
    unit = sum(rows["rlvr"].values()) if "rlvr" in rows else 1.0
    lines = [f"| run | {' | '.join(PARTS)} | in all |", f"|---|{'---:|' * (len(PARTS) + 1)}"]
    for name, parts in rows.items():
        shown = (f"{parts[part] / unit:.2f}" for part in PARTS)
        lines.append(f"| {name} | {' | '.join(shown)} | {sum(parts.values()) / unit:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
