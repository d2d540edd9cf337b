"""What a snapshot costs, against copying the tree: import, fork, mount, seal, restore; by size of tree, depth of chain.

Run it as root, for overlayfs without a user namespace, or as anybody. Machines are noisy: read the ratios. Each is
compared with `cp -a` of the same tree, right before. `--save` writes the table to benchmarks/results/snapshots.json.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from rich.console import Console
from rich.table import Table

from gametape.sandbox.snapshots import overlay
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.sandbox.snapshots.store_layout import SnapshotView

RESULTS = Path(__file__).parent / "results" / "snapshots.json"
CHANGED = 20
P = ParamSpec("P")
T = TypeVar("T")
console = Console(stderr=True)


def timed(action: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> tuple[float, T]:
    """How many milliseconds it took, and what came of it."""
    began = time.perf_counter()
    result = action(*arguments, **options)
    return (time.perf_counter() - began) * 1000, result


def make_tree(place: Path, files: int) -> None:
    for number in range(files):
        directory = place / f"package-{number // 1000}" / f"module-{number // 50 % 20}"
        if number % 50 == 0:
            directory.mkdir(parents=True)
        (directory / f"file-{number}.py").write_text(f"value = {number}\n" * 40)


def change(view: SnapshotView, place: Path, turn: int) -> float:
    """Rewrite files in a view, in a process that mounts it and ends, as a sandbox does. Says how long mounting took."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        assert view.mount
        overlay.enter_private_namespace()
        place.mkdir(exist_ok=True)
        took, _ = timed(overlay.mount, view.mount, str(place))
        for number in range(CHANGED):
            (place / "package-0" / "module-0" / f"file-{number}.py").write_text(f"changed = {turn}\n" * 40)
        os.write(write, str(took).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    with open(read, encoding="ascii") as file:
        return float(file.read())


def measure_tree(files: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as directory:
        root = Path(directory)
        make_tree(root / "source", files)
        copied, _ = timed(subprocess.check_call, ["cp", "-a", str(root / "source"), str(root / "copy")])
        with SnapshotStore(root / "store", mode="overlay") as store:
            imported, base = timed(store.import_tree, root / "source")
            store.close_view(store.open_view(base))  # finds out what works here
            samples: dict[str, list[float]] = {"open": [], "mount": [], "seal": [], "seal_lazy": [], "restore": []}
            for turn in range(rounds):
                opened, view = timed(store.open_view, base)
                mounted = change(view, root / "shown", turn)
                sealed, _ = timed(store.seal, view)
                change(view, root / "shown", turn + rounds)
                lazily, snapshot = timed(store.seal, view, durably=False, live=False)
                restored, again = timed(restore, store, view, snapshot)
                store.close_view(again)
                for name, took in zip(samples, (opened, mounted, sealed, lazily, restored), strict=True):
                    samples[name].append(took)
            medians = {f"{name}_ms": statistics.median(values) for name, values in samples.items()}
            return {"files": files, "cp_ms": copied, "import_ms": imported, **medians}


def restore(store: SnapshotStore, view: SnapshotView, snapshot: str) -> SnapshotView:
    store.close_view(view)
    return store.open_view(snapshot)


def measure_chain(depth: int) -> dict[str, Any]:
    """Fork, change and seal, each from the one before; the first twenty times against the last twenty."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as directory:
        root = Path(directory)
        make_tree(root / "source", 1000)
        with SnapshotStore(root / "store", mode="overlay") as store:
            snapshot = store.import_tree(root / "source")
            store.close_view(store.open_view(snapshot))
            samples: dict[str, list[float]] = {"open": [], "mount": [], "seal": []}
            for turn in range(depth):
                opened, view = timed(store.open_view, snapshot)
                mounted = change(view, root / "shown", turn)
                sealed, snapshot = timed(store.seal, view, durably=False, live=False)
                store.close_view(view)
                for name, took in zip(samples, (opened, mounted, sealed), strict=True):
                    samples[name].append(took)
            row: dict[str, Any] = {"depth": depth, "layers": len(store.snapshot(snapshot).layers)}
            for name, values in samples.items():
                first, last = statistics.median(values[:20]), statistics.median(values[-20:])
                row |= {f"{name}_first_ms": first, f"{name}_last_ms": last, f"{name}_ratio": last / first}
            return row


def show(trees: list[dict[str, Any]], chain: dict[str, Any]) -> None:
    columns = ("cp", "import", "open", "mount", "seal", "seal_lazy", "restore")
    table = Table(title=f"milliseconds by size of tree, {CHANGED} files changed per seal", title_justify="left")
    for column in ("files", *columns, "cp / open"):
        table.add_column(column.replace("_", ", "), justify="right")
    for row in trees:
        numbers = (f"{row[f'{name}_ms']:.1f}" for name in columns)
        table.add_row(f"{row['files']:,}", *numbers, f"{row['cp_ms'] / row['open_ms']:,.0f}")
    Console().print(table)
    table = Table(title=f"a chain of {chain['depth']} forks, {chain['layers']} layers at its end", title_justify="left")
    for column in ("", "first ms", "last ms", "ratio"):
        table.add_column(column, justify="right")
    for name in ("open", "mount", "seal"):
        table.add_row(name, *(f"{chain[f'{name}_{part}']:.2f}" for part in ("first_ms", "last_ms", "ratio")))
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[10_000, 100_000], help="sizes of trees")
    parser.add_argument("--depth", type=int, default=500, help="length of the chain")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name} beside this script")
    options = parser.parse_args()
    with console.status("making and measuring trees"):
        trees = [measure_tree(files, options.rounds) for files in options.files]
        chain = measure_chain(options.depth)
    show(trees, chain)
    if options.save:
        machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps({"machine": machine, "trees": trees, "chain": chain}, indent=2) + "\n")


if __name__ == "__main__":
    main()
