"""What mining yields on real packages: candidates, valid tasks, reasons, seconds, for single features and for unions.

    python benchmarks/yields.py --out DIR [--unions N] [PACKAGE...]

Fetches each package's sdist, mines every single feature, then unions of two. A package that is finished is not mined
again, so it can be interrupted. Prints a table and writes it, as data, beside this script.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

PACKAGES = (
    *("addict==2.4.0", "xmltodict==1.0.4", "parse==1.22.4", "tabulate==0.10.0", "isodate==0.7.2", "semver==3.1.1"),
    *("tinydb==4.9.0", "toolz==1.2.0", "sqlparse==0.6.1", "cachetools==8.0.0", "marshmallow==4.4.0", "tomlkit==0.15.2"),
)
RESULTS = Path(__file__).parent / "results" / "yields.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=PACKAGES, metavar="PACKAGE", help="a pinned requirement")
    parser.add_argument("--out", type=Path, required=True, help="where the tasks go")
    parser.add_argument("--limit", type=int, help="single features to try for each package; all if not given")
    parser.add_argument("--unions", type=int, default=25, help="unions to try for each package")
    parser.add_argument("--sdists", type=Path, help="sdists that are there already")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for package in options.packages:
        sdist = fetched(package, options.sdists or options.out / "sdists")
        name = package.partition("==")[0]
        single = mined(sdist, options.out / name, *(["--limit", str(options.limit)] if options.limit else []))
        rows.append({"package": package, "kind": "single", **single})
        print(row_text(rows[-1]), flush=True)
        if options.unions and single["valid"] > 1:
            union = mined(sdist, options.out / f"{name}-unions", "--union", "2", "--limit", str(options.unions))
            rows.append({"package": package, "kind": "union", **union})
            print(row_text(rows[-1]), flush=True)
    for kind in ("single", "union"):
        tried = sum(row["candidates"] for row in rows if row["kind"] == kind)
        valid = sum(row["valid"] for row in rows if row["kind"] == kind)
        if tried:
            low, high = interval(valid, tried)
            print(f"{kind}: {valid} of {tried} valid, {valid / tried:.1%} (95 % interval {low:.1%} to {high:.1%})")
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "kernel": platform.release()}
    RESULTS.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")


def fetched(package: str, directory: Path) -> Path:
    """The sdist of a package, from pip's index."""
    pattern = f"{package.replace('==', '-')}.tar.gz"
    if not [*directory.glob(pattern)]:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", package]
        subprocess.run([*command, "--dest", str(directory)], check=True)
    return next(iter(directory.glob(pattern)))


def mined(sdist: Path, out: Path, *more: str) -> dict[str, Any]:
    """Mine, or go on with it; what was reported is kept beside the tasks."""
    stored = out.with_suffix(".json")
    if not stored.exists():
        resume = ["--resume"] if out.exists() else []
        command = [sys.executable, "-m", "gametape.cli.main", "mine", str(sdist), "--out", str(out), *more, *resume]
        done = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, check=False, text=True)
        stored.write_text(done.stdout.splitlines()[-1] + "\n")
    report: dict[str, Any] = json.loads(stored.read_text())
    return {key: value for key, value in report.items() if key != "tasks"}


def row_text(row: dict[str, Any]) -> str:
    share = f"{row['valid'] / row['candidates']:.1%}" if row["candidates"] else "-"
    tests, why = row["suite"]["tests"] if row["suite"] else 0, row["rejected"] or row["refused"] or ""
    yielded = f"{row['candidates']:4} candidates {row['valid']:4} valid {share:>6}"
    pace = f"{row['seconds_per_candidate'] or 0:5.2f} s each"
    return f"{row['package']:20} {row['kind']:7} {tests:5} tests {yielded}  {pace}  {why}"


def interval(valid: int, tried: int) -> tuple[float, float]:
    """Wilson's, at 95 %."""
    z, share = 1.96, valid / tried
    middle = (share + z * z / (2 * tried)) / (1 + z * z / tried)
    half = z * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried)) / (1 + z * z / tried)
    return middle - half, middle + half


if __name__ == "__main__":
    main()
