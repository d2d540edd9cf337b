"""Verdicts on tasks that nobody has seen: prepared once for all verifier processes, or by each for itself.

    python benchmarks/preparation.py [--processes 4] [--katas 2] [--rollouts 8] [--updates 3]

An update is so many new katas with so many finished rollouts each, which all end at once; every rollout is another
program. `shared` is one `VerifierPool`, as `gametape train` has it: the next update's katas are prepared ahead while
`--decoding` seconds pass in which nothing is verified, as while a policy samples. `alone` is as many processes with a
home each, so that each prepares what it is asked about, with the same pauses. Both in one run, in turns. Prints how
often a task was prepared, the seconds that an update's verdicts took, and the ratio.
"""

import argparse
import asyncio
import json
import os
import platform
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from gametape.record.loaded_task import LoadedTask
from gametape.tasks.katas.generator import kata_stream
from gametape.verify.verifier_pool import VerifierPool

RESULTS = Path(__file__).parent / "results" / "preparation.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--katas", type=int, default=2)
    parser.add_argument("--rollouts", type=int, default=8)
    parser.add_argument("--updates", type=int, default=3)
    parser.add_argument("--decoding", type=float, default=5.0)
    chosen = parser.parse_args()
    katas = [kata.to_loaded_task(str(at)) for at, kata in enumerate(islice(kata_stream(7), 100))]
    with tempfile.TemporaryDirectory(prefix="gametape-preparation-") as scratch:
        rows = asyncio.run(measure(chosen, katas, Path(scratch)))
    machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
    RESULTS.write_text(json.dumps({"machine": machine, "settings": vars(chosen), **rows}, indent=1) + "\n")
    for name in ("alone", "shared"):
        seconds = ", ".join(f"{each:.1f}" for each in rows[name]["seconds"])
        print(f"{name:7} {rows[name]['preparations_per_task']:.2f} preparations a task; seconds an update: {seconds}")
    print(f"alone takes {rows['ratio']:.1f} times as long")


async def measure(chosen: argparse.Namespace, katas: Sequence[LoadedTask], scratch: Path) -> dict[str, Any]:
    updates = [katas[at * chosen.katas : (at + 1) * chosen.katas] for at in range(chosen.updates + 1)]
    seconds: dict[str, list[float]] = {"alone": [], "shared": []}
    pools = [VerifierPool(scratch / f"home-{at}", 1) for at in range(chosen.processes)]
    shared = VerifierPool(scratch / "home", chosen.processes)
    try:
        for at, tasks in enumerate(updates[:-1]):
            for name, taken in seconds.items():
                asked = pools if name == "alone" else [shared] * chosen.processes
                for task in tasks:  # when its first sandbox opens
                    asked[0].prepare(task)
                if name == "shared":
                    for task in updates[at + 1]:
                        shared.prepare(task, ahead=True)
                await asyncio.sleep(chosen.decoding)
                began = time.monotonic()
                await asyncio.gather(*(
                    asked[number % len(asked)].verify(task, attempt(task, scratch, name, number), "train", "layered")
                    for task in tasks
                    for number in range(chosen.rollouts)
                ))  # fmt: skip
                taken.append(round(time.monotonic() - began, 2))
    finally:
        for pool in (shared, *pools):
            await pool.__aexit__(None, None, None)
    seen = {task.digest for tasks in updates[:-1] for task in tasks}
    made = {
        name: sum(pool.prepared[digest] for pool in asked for digest in seen & set(pool.prepared))
        for name, asked in (("alone", pools), ("shared", [shared]))
    }
    return {
        **{name: {"preparations_per_task": made[name] / len(seen), "seconds": seconds[name]} for name in seconds},
        "ratio": round(sum(seconds["alone"]) / sum(seconds["shared"]), 2),
    }


def attempt(task: LoadedTask, scratch: Path, name: str, number: int) -> Path:
    """The reference, and a line that makes another program of it."""
    assert task.reference is not None
    place = scratch / "attempts" / name / task.digest / str(number)
    task.reference.write_to(place)
    source = place / task.task.source_paths[0]
    source.write_text(f"{source.read_text()}\n# {number}\n")
    return place


if __name__ == "__main__":
    main()
