"""What the sandbox costs: the same command bare and in the sandbox, turn by turn in one run.

Run it with `make bench`. Machines are noisy, so read the ratios and the differences, not the times; each is the median
over rounds in which both sides ran back to back. `--save` writes the table to benchmarks/results/sandbox.json.
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from gametape.sandbox.backend import Backend, Sandbox, SandboxSpec, backends, open_backend
from gametape.sandbox.scheduler import SandboxScheduler
from gametape.sandbox.session import ShellSession, open_session

RESULTS = Path(__file__).parent / "results" / "sandbox.json"
PYTEST = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp=scratch"]  # same disk
TEST_FILE = """
import json
import pytest

@pytest.mark.parametrize("n", range(25))
def test_numbers(n, tmp_path):
    table = {str(k): sum(range(k)) for k in range(n * 40)}
    (tmp_path / "table.json").write_text(json.dumps(table))
    assert json.loads((tmp_path / "table.json").read_text()) == table
"""


def timed(action: Callable[[], Any]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def run_bare(argv: list[str], workspace: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": "/tmp", "LANG": "C.UTF-8"}
    subprocess.run(argv, cwd=workspace, env=environment, capture_output=True, check=True)


def run_walled(sandbox: Sandbox, argv: list[str]) -> None:
    result = sandbox.exec(argv)
    if not result.ok or result.violations:
        raise SystemExit(f"the benchmark's own command failed: {result}")


def run_by_hand(argv: list[str]) -> None:
    """The scheduler: bubblewrap with namespaces and nothing else of ours."""
    options = (
        "--unshare-all --disable-userns --unshare-user --die-with-parent --ro-bind /usr /usr --proc /proc --dev /dev"
    )
    links = "--symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64"
    subprocess.run(["bwrap", *options.split(), *links.split(), "--", *argv], capture_output=True, check=True)


def run_live(session: ShellSession, command: str) -> None:
    if (result := session.run(command)).exit_code:
        raise SystemExit(f"the benchmark's own command failed: {result}")


def compare(name: str, bare: Callable[[], None], sandboxed: Callable[[], None], rounds: int) -> dict[str, Any]:
    pairs = []
    for _ in track(range(rounds + 2), description=name, console=Console(stderr=True), transient=True):
        pairs.append((timed(bare), timed(sandboxed)))
    del pairs[:2]  # they warm caches up
    return {
        "command": name,
        "rounds": rounds,
        "bare_ms": statistics.median(b for b, _ in pairs) * 1000,
        "walled_ms": statistics.median(w for _, w in pairs) * 1000,
        "over_ms": statistics.median(w - b for b, w in pairs) * 1000,
        "ratio": statistics.median(w / b for b, w in pairs),
    }


async def run_crowd(count: int, at_once: int) -> None:
    """Open `count` live sandboxes, run a command in each, all asked for at the same time."""
    async with SandboxScheduler(max_concurrent=at_once) as scheduler:
        workspaces = await asyncio.gather(*(scheduler.open(SandboxSpec()) for _ in range(count)))
        results = await asyncio.gather(*(workspace.shell("/usr/bin/true") for workspace in workspaces))
    if any(result.exit_code for result in results):
        raise SystemExit("a command of the crowd failed")


def measure_crowd(count: int) -> dict[str, Any]:
    """What each of many sandboxes costs, against what one alone does."""
    alone = min(timed(lambda: asyncio.run(run_crowd(1, 4))) for _ in range(5))
    crowd = timed(lambda: asyncio.run(run_crowd(count, 4))) / count
    name = f"{count} sessions at once, each"
    over = crowd - alone
    return {
        "command": name,
        "rounds": 1,
        "bare_ms": alone * 1000,
        "walled_ms": crowd * 1000,
        "over_ms": over * 1000,
    } | {"ratio": crowd / alone}


def measure(backend: Backend, workspace: Path, rounds: int) -> list[dict[str, Any]]:
    sandbox = backend.start(SandboxSpec(workspace=workspace))
    true, python = ["/usr/bin/true"], [sys.executable, "-c", "pass"]

    def pair(argv: list[str]) -> tuple[Callable[[], None], Callable[[], None]]:
        return (lambda: run_bare(argv, workspace)), (lambda: run_walled(sandbox, argv))

    rows = [
        compare("true, bubblewrap by hand", pair(true)[0], lambda: run_by_hand(true), rounds),
        compare("true", *pair(true), rounds),
        compare("python -c pass", *pair(python), rounds),
        compare("pytest, 250 tests", *pair(PYTEST), max(5, rounds // 4)),
    ]
    if backend.probe().capabilities.sessions:
        with open_session(SandboxSpec()) as session:
            rows.append(
                compare("true, in a live session", pair(true)[0], lambda: run_live(session, true[0]), 5 * rounds)
            )
        rows.append(measure_crowd(200))
    return rows


def show(backend: str, rows: list[dict[str, Any]]) -> None:
    table = Table(title=f"bare against sandbox ({backend}, events on)", title_justify="left")
    for column in ("command", "bare ms", "sandbox ms", "over bare ms", "ratio"):
        table.add_column(column, justify="left" if column == "command" else "right")
    for row in rows:
        numbers = (f"{row[key]:.1f}" for key in ("bare_ms", "walled_ms", "over_ms"))
        table.add_row(row["command"], *numbers, f"{row['ratio']:.2f}")
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40, help="rounds for the short commands")
    parser.add_argument("--backend", choices=list(backends()), default="bubblewrap")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name} beside this script")
    options = parser.parse_args()
    backend = open_backend(options.backend)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        workspace = Path(directory)
        for index in range(10):
            (workspace / f"test_{index}.py").write_text(TEST_FILE)
        rows = measure(backend, workspace, options.rounds)
    show(options.backend, rows)
    if options.save:
        machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
