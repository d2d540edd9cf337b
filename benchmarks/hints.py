"""What SmolLM2-135M is told on real tasks: hints for its own failed rollouts, as they are, with what the gates say.

    python benchmarks/hints.py [--keep runs/hints] [--suite examples/tasks ...] [--seeds 2]

Every task of a suite is attempted freely and with calls that a grammar forces (`gametape solve`, `--constrain`): freely
a model of this size is mostly cut off, forced it makes calls with faults of all kinds. Each attempt is then coached by
the cheap gates (`gametape coach --gates g0,g1`). Attempts and answers lie in `--keep`; what is there is not done again.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "hints.json"
GAMETAPE = [sys.executable, "-m", "gametape.cli.main"]
GATES = ("g0", "g1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, default=ROOT / "runs" / "hints")
    parser.add_argument("--suite", type=Path, nargs="+", default=[ROOT / "examples" / "tasks"])
    parser.add_argument("--limit", type=int, help="tasks of each suite")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--turn-tokens", type=int, default=192)
    parser.add_argument("--model", default="smollm2")
    chosen = parser.parse_args()
    tasks = [
        path.parent for suite in chosen.suite for path in [*sorted(suite.resolve().glob("*/task.toml"))][: chosen.limit]
    ]
    targets: list[dict[str, Any]] = []
    attempts = 0
    for seed in range(chosen.seeds):
        for task in tasks:
            for way in ("free", "forced"):
                attempts += 1
                targets += coached(chosen, task, way, seed)
                print(f"{attempts} attempts, {len(targets)} hints, {len(texts(targets))} texts", file=sys.stderr)
    machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
    settings = {
        name: value for name, value in vars(chosen).items() if name in {"seeds", "turns", "turn_tokens", "model"}
    }
    rows, sums = texts(targets), by_author(targets)
    document = {"machine": machine, "settings": settings, "attempts": attempts, "authors": sums, "hints": rows}
    RESULTS.write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(sums))
    shown = ("author", "type", "times", *GATES, "nats", "text")
    for row in rows:
        print(f"| {' | '.join(str(row[name]) for name in shown)} |")


def coached(chosen: argparse.Namespace, task: Path, way: str, seed: int) -> list[dict[str, Any]]:
    """The targets of one attempt; none where it passed, or where nothing was found."""
    place = chosen.keep / f"{task.name}-{way}-{seed}"
    answer = place.with_suffix(".json")
    if not answer.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        said(["solve", str(task), "--model", chosen.model, "--out", str(place), "--seed", str(seed), "--no-watch",
              "--max-turns", str(chosen.turns), "--max-turn-tokens", str(chosen.turn_tokens),
              *(["--constrain"] if way == "forced" else []), *(["--resume"] if place.exists() else [])])  # fmt: skip
        found = said(["coach", str(next(place.glob("trajectory*.json"))), "--task", str(task), "--model", chosen.model,
                      "--gates", ",".join(GATES), "--out", f"{place}.coached",
                      "--max-turn-tokens", str(chosen.turn_tokens)])  # fmt: skip
        answer.write_text(json.dumps(found))
    targets: list[dict[str, Any]] = json.loads(answer.read_text())["targets"]
    return targets


def said(words: list[str]) -> dict[str, Any]:
    done = subprocess.run([*GAMETAPE, *words, "--json"], capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1}:
        raise SystemExit(f"{' '.join(words)}\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def texts(targets: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each text once, the most frequent first: how often it was written, how often each gate passed, and by how many
    nats, in the median, it moved what the model had done."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for target in targets:
        groups.setdefault((target["author"], target["type"], target["hint"]), []).append(target)
    rows = []
    for (author, kind, text), same in sorted(groups.items(), key=lambda item: -len(item[1])):
        passed = {gate: sum(bool(one["gates"].get(gate, {}).get("passed")) for one in same) for gate in GATES}
        moved = sorted(one["gates"]["g0"]["value"] for one in same if one["gates"].get("g0"))
        nats = round(moved[len(moved) // 2], 1) if moved else None
        rows.append({"author": author, "type": kind, "text": text, "times": len(same), **passed, "nats": nats})
    return rows


def by_author(targets: Iterable[dict[str, Any]]) -> dict[str, dict[str, int]]:
    sums: dict[str, Counter[str]] = {}
    for target in targets:
        own = sums.setdefault(target["author"], Counter())
        own["written"] += 1
        own.update(gate for gate in GATES if target["gates"].get(gate, {}).get("passed"))
    return {author: dict(counts) for author, counts in sums.items()}


if __name__ == "__main__":
    main()
