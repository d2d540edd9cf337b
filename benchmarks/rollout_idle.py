"""Training SmolLM2-135M on sandboxed tasks: what the time of three updates goes into, and which hints it is given.

    python benchmarks/rollout_idle.py [--keep runs/idle] [--mine SOURCE] [--runs TASKS:ARM[@JUDGE] ...]
    python benchmarks/rollout_idle.py --small          # one arm, one update of two groups: does it run at all

`examples` are examples/tasks; `mined` are 20 tasks mined from SOURCE, a package's source tree or sdist. Each run has
three batches. Runs lie in `--keep` and are gone on with where they were: a run that is finished is not run again.
Shares are of the clock and overlap: `idle` is the time in which the network neither samples nor learns. The last
coached rollout of each evaluation is coached once more with the cheap gates, which `rlvr_ttf` does not ask: `authors`
is from the run, `gates` from there. Hints are shown as they were written, each once, with how often it was a target.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from training_runs import trained

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "rollout_idle.json"
RUNS = ("examples:rlvr", "examples:rlvr_ttf", "mined:rlvr", "mined:rlvr_ttf", "examples:rlvr_ttf@policy")
MOST_HINTS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, default=ROOT / "runs" / "idle")
    parser.add_argument("--mine", type=Path, default=ROOT / "examples" / "demo-project")
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--runs", nargs="+", default=RUNS)
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--groups", type=int, default=2)
    parser.add_argument("--group-size", type=int, default=4)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--turn-tokens", type=int, default=160)
    parser.add_argument("--annotated", type=int, default=2)
    parser.add_argument("--replay", type=float, default=0.5)
    parser.add_argument("--asynchronous", action="store_true")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--small", action="store_true")
    chosen = parser.parse_args()
    if chosen.small:
        chosen.runs, chosen.batches, chosen.turns, chosen.turn_tokens = ["examples:rlvr"], 1, 2, 24
        chosen.group_size = 2
    rows = []
    for name in chosen.runs:
        tasks, _, arm = name.partition(":")
        rows.append(measured(chosen, *arm.partition("@")[::2], tasks))
        print(line(rows[-1]), flush=True)
    if not chosen.small:
        machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
        settings = {name: value for name, value in vars(chosen).items() if not isinstance(value, Path)}
        document = {"machine": machine, "settings": settings | {"mine": chosen.mine.name}, "rows": rows}
        RESULTS.write_text(json.dumps(document, indent=1) + "\n")
    for row in rows:
        for hint in row["hints"]:
            print(f"{row['arm']}, {row['tasks']}: {hint['author']}, {hint['type']}, {hint['times']}x: {hint['text']}")


def measured(chosen: argparse.Namespace, arm: str, judge: str, tasks: str) -> dict[str, Any]:
    """A run from its beginning, or from where it was; its summary, and what its log says."""
    suite = ROOT / "examples" / "tasks" if tasks == "examples" else mined(chosen)
    kind = "async" if chosen.asynchronous else "sync"
    name = f"{arm}-{tasks}-{kind}{f'-{judge}' if judge else ''}{'-small' if chosen.small else ''}"
    config, run = chosen.keep / f"{name}.toml", chosen.keep / name
    chosen.keep.mkdir(parents=True, exist_ok=True)
    config.write_text(configuration(chosen, arm, judge, suite))
    answer = trained(chosen.keep, name, config, 0, threads=os.cpu_count() or 1)
    updates = [entry for entry in lines(run / "metrics.jsonl") if entry["kind"] == "update"]
    wanted = ("updates", "steps", "episodes", "seconds", "tokens_per_second", "time", "groups", "tokens")
    return {
        "arm": arm,
        "judge": judge,
        "tasks": tasks,
        "mode": kind,
        "settings": settings_of(run),
        **{name: answer[name] for name in wanted},
        "time_by_update": [entry["time"] for entry in updates],
        "authors": authors(updates),
        "gates": gates(run, suite, chosen.turn_tokens),
        "hints": hints(run),
    }


def configuration(chosen: argparse.Namespace, arm: str, judge: str, suite: Path) -> str:
    return f"""\
arm = "{arm}"
model = {json.dumps(chosen.model)}
tasks = {json.dumps(str(suite))}
allow_shared = true
episodes = {chosen.batches * chosen.groups * chosen.group_size}

[optim]
learning_rate = 1e-6

[rl]
groups = {chosen.groups}
group_size = {chosen.group_size}
resample = 1.0
turns = {chosen.turns}
turn_tokens = {chosen.turn_tokens}
normalizer_tokens = {chosen.turns * chosen.turn_tokens}
asynchronous = {str(chosen.asynchronous).lower()}

[ttf]
annotated_per_group = {chosen.annotated}
replay = {chosen.replay}
judge = "{judge}"

[eval]
every = "1 updates"
episodes = 2
slice = 1

[checkpoint]
every = 1
"""


def mined(chosen: argparse.Namespace) -> Path:
    out: Path = chosen.keep / "mined"
    if not (out / "done").exists():
        again = ["--resume"] if out.exists() else []
        command = [sys.executable, "-m", "gametape.cli.main", "mine", str(chosen.mine), "--out", str(out)]
        subprocess.run([*command, "--limit", str(chosen.limit), *again], check=True)
        (out / "done").touch()
    return out


def authors(updates: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """By author, over the whole run: hints that were written, refused and used."""
    totals: dict[str, Counter[str]] = {}
    for entry in updates:
        for author, counts in entry["hints"].items():
            totals.setdefault(author, Counter()).update(counts)
    return {author: dict(counts) for author, counts in totals.items()}


def gates(run: Path, suite: Path, turn_tokens: int) -> dict[str, dict[str, Any]]:
    """By author: what the cheap gates say about the hints for the rollouts that the run kept."""
    totals: dict[str, Counter[str]] = {}
    for path in sorted((run / "trajectories").glob("d*.json")):
        coached = run / "gated" / path.name
        if not coached.exists():
            coached.parent.mkdir(exist_ok=True)
            command = [sys.executable, "-m", "gametape.cli.main", "coach", str(path), "--task", str(suite), "--json"]
            command += ["--model", str(run), "--gates", "g0,g1", "--out", f"{coached}.trajectory.json"]
            command += ["--max-turn-tokens", str(turn_tokens)]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
            coached.write_text(done.stdout.splitlines()[-1])
        for author, counts in json.loads(coached.read_text())["authors"].items():
            flat = {"hints": counts["written"]}
            flat |= {f"{gate} {what}": counts[what].get(gate, 0) for gate in ("g0", "g1") for what in ("run", "passed")}
            totals.setdefault(author, Counter()).update(flat)
    return {author: dict(counts) for author, counts in totals.items()}


def settings_of(run: Path) -> dict[str, Any]:
    """What the run was begun with, as far as its cost depends on it."""
    config = tomllib.loads((run / "config.toml").read_text())
    wanted = {"rl": ("groups", "group_size", "turns", "turn_tokens"), "ttf": ("annotated_per_group", "replay", "judge")}
    return {key: config[table][key] for table, keys in wanted.items() for key in keys}


def hints(run: Path) -> list[dict[str, Any]]:
    """The texts that were learned from, the most frequent first."""
    found = Counter((entry["author"], entry["kind"], entry["text"]) for entry in lines(run / "targets.jsonl"))
    return [
        {"author": author, "type": kind, "text": text, "times": times}
        for (author, kind, text), times in found.most_common(MOST_HINTS)
    ]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def line(row: dict[str, Any]) -> str:
    shares = ", ".join(f"{name} {share:.0%}" for name, share in row["time"].items())
    arm = row["arm"] + (f"@{row['judge']}" if row["judge"] else "")
    return f"{arm:16} {row['tasks']:9} {row['mode']}: {row['seconds']:.0f} s, {row['updates']} updates: {shares}"


if __name__ == "__main__":
    main()
