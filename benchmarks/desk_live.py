"""Heartbeats at one to five seconds under the real desk, for minutes, with the server killed again and again.

    python benchmarks/desk_live.py [--minutes 5] [--seed 0]

Says how many ticks there were, how late they came, that none came twice, that the budget held, and that heartbeats on
which nothing happened spent nothing. Writes benchmarks/results/desk_live.json; exits 1 if a promise was broken.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from gametape.desk.desk import open_desk
from gametape.desk.heartbeats import registry
from gametape.desk.heartbeats.registry import TickRecord

RESULT = Path(__file__).parent / "results" / "desk_live.json"
EVERY = (1, 2, 3, 4, 5)
BUDGET = 20_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gametape-desk-live-") as root:
        home = Path(root) / "home"
        names = _add(home, Path(root))
        started = time.time()
        kills = _serve(home, arguments.minutes * 60, random.Random(arguments.seed))
        answer = _answer(home, names, time.time() - started, kills)
    RESULT.write_text(json.dumps(answer, indent=1) + "\n")
    print(json.dumps(answer))
    return 0 if not answer["broken"] else 1


def _add(home: Path, root: Path) -> list[str]:
    """Of each interval one that asks within a budget, one whose guard says no, one whose files never change; and one
    that ticks when another has answered."""
    workspace = root / "workspace"
    workspace.mkdir()
    (workspace / "a.txt").write_text("a\n")
    script = root / "model.jsonl"
    script.write_text("".join(json.dumps({"text": f"look {number}"}) + "\n" for number in range(2000)))
    common = f"model: scripted:{script}\nworkspace: {workspace}\nnotify: false\n"
    kinds = {
        "asks": f"cadence: {{every: %d}}\nbudget: {{tokens: {BUDGET}}}",
        "guarded": "cadence: {every: %d}\nguard: test -f b.txt",
        "watching": "event: {files: ['*.txt'], every: %d}",
    }
    files = {f"{kind}-{every}": matter % every for every in EVERY for kind, matter in kinds.items()}
    files["follows"] = f"event: {{heartbeat: asks-5, every: 1}}\nbudget: {{tokens: {BUDGET}}}"
    with open_desk(home) as desk:
        for name, matter in files.items():
            registry.add(desk, name, f"---\n{common}{matter}\n---\nAnything new?\n")
    return list(files)


def _serve(home: Path, seconds: float, chance: random.Random) -> int:
    end, kills = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0:
        server = subprocess.Popen(
            [sys.executable, "-m", "gametape.cli.main", "desk", "serve", "--home", str(home)], stderr=subprocess.DEVNULL
        )
        time.sleep(min(left, chance.uniform(10, 40)))
        if end - time.monotonic() > 0:
            os.kill(server.pid, signal.SIGKILL)
            kills += 1
        else:
            server.send_signal(signal.SIGTERM)
        server.wait()
    return kills


def _answer(home: Path, names: list[str], seconds: float, kills: int) -> dict[str, Any]:
    with open_desk(home) as desk:
        ticks = {name: registry.tick_log(desk, name, 100_000) for name in names}
    late = [tick.at - tick.scheduled for records in ticks.values() for tick in records]
    return {
        "seconds": round(seconds, 1),
        "cores": os.cpu_count(),
        "kills": kills,
        "heartbeats": len(names),
        "ticks": sum(len(records) for records in ticks.values()),
        "ticks_by_outcome": {
            outcome: sum(tick.outcome == outcome for records in ticks.values() for tick in records)
            for outcome in ("asked", "guard", "budget", "nothing", "refused", "failed")
        },
        "seconds_late_median": round(statistics.median(late), 2) if late else None,
        "tokens_by_asking": {
            name: sum(tick.tokens for tick in records) for name, records in ticks.items() if "asks" in name
        },
        "tokens_by_idle": sum(tick.tokens for name in names if _is_idle(name) for tick in ticks[name]),
        "broken": [problem for name, records in ticks.items() for problem in _broken_promises(name, records)],
    }


def _is_idle(name: str) -> bool:
    return name.startswith(("guarded", "watching"))


def _broken_promises(name: str, ticks: list[TickRecord]) -> list[str]:
    """A tick that came too early or twice; a budget overrun; tokens of one that had nothing to ask; an outcome that
    should not be."""
    instants = sorted(tick.scheduled for tick in ticks)
    problems = []
    if any(later - earlier < 0.99 for earlier, later in pairwise(instants)):
        problems.append(f"{name}: two ticks within a second")
    if _is_idle(name) and any(tick.tokens for tick in ticks):
        problems.append(f"{name}: spent tokens on nothing")
    if name.startswith("watching") and ticks:
        problems.append(f"{name}: ticked although nothing changed")
    if (spent := sum(tick.tokens for tick in ticks)) > BUDGET:
        problems.append(f"{name}: {spent} tokens of a budget of {BUDGET}")
    problems += [f"{name}: {tick.outcome}: {tick.detail}" for tick in ticks if tick.outcome in ("failed", "refused")]
    return problems


if __name__ == "__main__":
    sys.exit(main())
