"""How fast candidates are tried, against the test runs that any such miner needs.

    python benchmarks/mine.py [--limit N] [SDIST...]

The floor is one run of the whole suite for each candidate, over the tree without the candidate's functions, by plain
`python -m pytest` with the same interpreter and no sandbox. The miner, with one job, does that run and every gate. Both
are timed in turn on the same machine, so their ratio says more than the seconds do.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gametape.tasks.loader import load_task
from yields import fetched

PACKAGES = ("tinydb==4.9.0", "sqlparse==0.6.1", "cachetools==8.0.0", "tomlkit==0.15.2")
RESULTS = Path(__file__).parent / "results" / "mine.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=PACKAGES, metavar="PACKAGE", help="a pinned requirement")
    parser.add_argument("--limit", type=int, default=30, help="candidates of each package")
    parser.add_argument("--sdists", type=Path, help="sdists that are there already")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="gametape-bench-") as scratch:
        for package in options.packages:
            sdist = fetched(package, options.sdists or Path(scratch) / "sdists")
            rows.append({"package": package, **measured(sdist, Path(scratch) / package, options.limit)})
            print(row_text(rows[-1]), flush=True)
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "kernel": platform.release()}
    RESULTS.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")


def measured(sdist: Path, out: Path, limit: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "gametape.cli.main", "mine", str(sdist), "--out", str(out), "--json"]
    more = ["--limit", str(limit), "--jobs", "1"]
    done = subprocess.run([*command, *more], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True)
    report = json.loads(done.stdout.splitlines()[-1])
    bare = [bare_run(Path(task)) for task in report["tasks"]]
    floor = sum(bare) / len(bare)
    each = report["seconds_per_candidate"]
    set_up = report["seconds"] - each * report["candidates"]
    return {
        "tests": report["suite"]["tests"],
        "candidates": report["candidates"],
        "valid": report["valid"],
        "seconds_per_candidate": each,
        "floor_seconds": round(floor, 3),
        "ratio": round(each / floor, 2),
        "per_hour_and_core": round(3600 / each),
        "set_up_seconds": round(set_up, 1),
    }


def bare_run(task: Path) -> float:
    """The suite over the deleted tree, in a plain process."""
    loaded_task = load_task(task)
    with tempfile.TemporaryDirectory(prefix="gametape-bench-") as scratch:
        workspace = Path(scratch)
        loaded_task.suite.overlaid_on(loaded_task.start).write_to(workspace)
        roots = ":".join(str(workspace / root) for root in loaded_task.task.import_roots)
        files = sorted({test.partition("::")[0] for test in loaded_task.task.tests.every})
        command = [
            str(loaded_task.interpreter),
            "-B",
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--tb=short",
            *files,
        ]
        began = time.monotonic()
        subprocess.run(
            command, cwd=workspace, env={**os.environ, "PYTHONPATH": roots}, capture_output=True, check=False
        )
        return time.monotonic() - began


def row_text(row: dict[str, Any]) -> str:
    pace = f"{row['seconds_per_candidate']:.2f} s a candidate, {row['per_hour_and_core']} an hour and core"
    floor = f"bare {row['floor_seconds']:.2f} s  ratio {row['ratio']:.2f}"
    return f"{row['package']:20} {row['tests']:5} tests  {pace}  {floor}"


if __name__ == "__main__":
    main()
