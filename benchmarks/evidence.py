"""The registered grid on a real model: warm starts, a pilot that sizes the rest, and every cell, as far as time allows.

    python benchmarks/evidence.py [--grid configs/evidence.toml] [--out runs/evidence] [--results FILE]
                                  [--device cuda] [--minutes 28] [--at-once 8] [--row REGIME] [--home DIR]

What is registered is in docs/evidence.md, and in the grid: regimes, arms, seeds and bounds of the budget. First come
the warm starts, then one short pilot for each regime, at once as the runs will be; from the operations a second of the
pilots and the minutes that are left follows the budget of operations of every run, the same for all arms of a regime.
It is written into `plan.json` and kept from then on. Cells follow seed by seed.

Every run is a process of `gametape train`. When the minutes are over the processes get an interrupt, go down with a
checkpoint, and go on when this program is started again, which may be killed at any instant: runs die with it. A line
for each finished run is appended to the results at once, and a line with `partial` for each that the time cut off.
`evidence_report.py` draws tables and charts from the lines, of which the last one of a run counts.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from bridge_model import LAYERS, cut_model
from evidence_grid import Grid, Job, as_changes
from gametape.record.home import home_directory
from gametape.train.early_checks import find_model

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "evidence.jsonl"
CURVE = ("episodes_so_far", "flops", "seconds", "success", "load_bearing", "ordinary", "hinted")
_ENDS_WITH_PARENT = (
    "import ctypes, os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "ctypes.CDLL(None).prctl(1, signal.SIGKILL); os.execv(sys.argv[1], sys.argv[1:])"
)
"""PR_SET_PDEATHSIG: a run ends with this program, however that ends. And it hears an interrupt, which processes in the
background are born deaf to."""
_GRACE = 45.0
"""Seconds before the end in which runs are told to go down, and write what they have."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grid", type=Path, default=HERE.parent / "configs" / "evidence.toml")
    parser.add_argument("--out", type=Path, default=Path("runs") / "evidence")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--home", type=Path, help="where smollm2 lies")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--minutes", type=float, default=28.0, help="of this call; a later one goes on")
    parser.add_argument("--total", type=float, help="minutes that the plan is made for, where calls are shorter")
    parser.add_argument("--at-once", type=int, default=8, help="runs that share the device")
    parser.add_argument("--threads", type=int, default=2, help="of each run")
    parser.add_argument("--row", nargs="*", help="these regimes alone")
    chosen = parser.parse_args()
    work = Work(chosen, time.monotonic())
    sys.exit(0 if work.run() else 1)


@dataclass
class Work:
    chosen: argparse.Namespace
    began: float
    grid: Grid = field(init=False)
    _running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.grid = Grid.read(self.chosen.grid)
        if self.chosen.row:
            regimes = {name: self.grid.regimes[name] for name in self.chosen.row}
            self.grid = Grid({**self.grid.document, "regimes": regimes})
        self.chosen.out.mkdir(parents=True, exist_ok=True)
        self.chosen.results.parent.mkdir(parents=True, exist_ok=True)

    @property
    def left(self) -> float:
        """Seconds."""
        return 60 * self.chosen.minutes - (time.monotonic() - self.began)

    def run(self) -> bool:
        """Whether everything is done."""
        timer = threading.Timer(max(1.0, self.left - _grace(self.chosen.minutes)), self._stop_all)
        timer.daemon = True
        timer.start()
        try:
            if not self._all(self.grid.warm_jobs()):
                return False
            if not self._all(self.grid.pilot_jobs()):
                return False
            return self._all(self.grid.cells(self._plan()))
        finally:
            timer.cancel()

    def _all(self, jobs: Iterable[Job]) -> bool:
        with ThreadPoolExecutor(self.chosen.at_once) as pool:
            return all([*pool.map(self._one, list(jobs))])

    def _one(self, job: Job) -> bool:
        """Whether it is done; nothing is begun in the last minute."""
        answer = self.chosen.out / f"{job.name}.json"
        if answer.exists():
            return True
        if self.left < _grace(self.chosen.minutes):
            return False
        root, log = self.chosen.out / job.name, self.chosen.out / f"{job.name}.log"
        with log.open("a") as errors:
            with self._lock:
                process = subprocess.Popen(
                    [sys.executable, "-c", _ENDS_WITH_PARENT, *self._command(job, root)],
                    env={**os.environ, "OMP_NUM_THREADS": str(self.chosen.threads)},
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                )
                self._running[job.name] = process
            said, _ = process.communicate()
        with self._lock:
            del self._running[job.name]
        lines = said.splitlines()
        if process.returncode or not lines:
            self._append(job, root, {"partial": True, "exit_code": process.returncode})
            print(f"{job.name}: not done (exit code {process.returncode}); see {log}", flush=True)
            return False
        told = json.loads(lines[-1])
        self._append(job, root, told)
        answer.write_text(json.dumps(told))
        shown = {key: told[key] for key in ("success_before", "success_after", "episodes", "flops", "seconds")}
        print(job.name, shown, flush=True)
        return True

    def _command(self, job: Job, root: Path) -> list[str]:
        command = [sys.executable, "-m", "gametape.cli.main", "train", "--json"]
        command += ["--home", str(self.chosen.home)] if self.chosen.home else []
        if (root / "config.toml").exists():
            return [*command, "--resume", str(root)]
        settings = {**job.settings, "device": self.chosen.device}
        if job.after:
            settings["model"] = str((self.chosen.out / job.after).absolute())
        elif settings["model"] == "bridge":
            settings["model"] = str(self._bridge().absolute())
        model, tasks, arm = (str(settings.pop(key)) for key in ("model", "tasks", "arm"))
        command += ["--model", model, "--tasks", tasks, "--arm", arm, "--seed", str(job.seed), "--out", str(root)]
        return [*command, *(word for change in as_changes(settings) for word in ("--set", change))]

    def _bridge(self) -> Path:
        """Made where it is first needed, whole or not at all."""
        place = self.chosen.out / "bridge"
        if not place.exists():
            with tempfile.TemporaryDirectory(dir=self.chosen.out) as scratch:
                made = Path(scratch) / "bridge"
                cut_model(find_model("smollm2", home_directory(self.chosen.home)), made, list(LAYERS))
                made.rename(place)
        return place

    def _append(self, job: Job, root: Path, told: dict[str, Any]) -> None:
        log = root / "metrics.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        keys = ("success_before", "success_after", "episodes", "updates", "flops", "seconds", "tokens", "stopped_by")
        entry = {
            "run": job.name,
            "kind": job.kind,
            "regime": job.regime,
            "arm": job.arm,
            "seed": job.seed,
            **{key: told[key] for key in (*keys, "partial", "exit_code", "device", "time", "groups") if key in told},
            "curve": [[line.get(key) for key in CURVE] for line in lines if line["kind"] == "eval"],
            "entropy": [line["entropy"] for line in lines if line["kind"] == "update" and line.get("entropy")][-1:],
            "alarms": sorted({line["name"] for line in lines if line["kind"] == "alarm"}),
            "machine": machine(),
        }
        with self._lock, self.chosen.results.open("a") as results:
            results.write(json.dumps(entry) + "\n")
            results.flush()
            os.fsync(results.fileno())

    def _plan(self) -> dict[str, int]:
        """Operations of a run, by regime."""
        path = self.chosen.out / "plan.json"
        if path.exists():
            kept: dict[str, int] = json.loads(path.read_text())["flops"]
            return kept
        counts = {name: sum(job.regime == name for job in self._cells_of_one()) for name in self.grid.regimes}
        plan: dict[str, Any] = {"flops": {}, "rates": {}, "runs": counts, "machine": machine()}
        seconds = 60 * (self.chosen.total or self.chosen.minutes) - (time.monotonic() - self.began)
        share = self.grid.document["pilot"]["share"] * max(60.0, seconds) / len(counts)
        for regime, runs in counts.items():
            pilots = [job.name for job in self.grid.pilot_jobs() if job.regime == regime]
            told = [json.loads((self.chosen.out / f"{name}.json").read_text()) for name in pilots]
            rate = sum(one["flops"] for one in told) / max(1.0, sum(one["seconds"] for one in told))
            low, high = self.grid.regimes[regime]["flops_bounds"]
            affordable = rate * share * min(self.chosen.at_once, runs) / runs
            plan["rates"][regime] = rate
            plan["flops"][regime] = int(min(high, max(low, affordable)))
        path.write_text(json.dumps(plan, indent=1) + "\n")
        print("plan", plan, flush=True)
        return dict(plan["flops"])

    def _cells_of_one(self) -> list[Job]:
        return list(self.grid.cells(dict.fromkeys(self.grid.regimes, 1)))

    def _stop_all(self) -> None:
        """As Ctrl-C does: a run goes down with what its last checkpoint has."""
        with self._lock:
            for process in self._running.values():
                process.send_signal(signal.SIGINT)


def _grace(minutes: float) -> float:
    return min(_GRACE, 60 * minutes / 4)


def machine() -> dict[str, Any]:
    return {"cores": os.cpu_count(), "python": platform.python_version(), "torch": metadata.version("torch")}


def last_lines(results: Path) -> Sequence[dict[str, Any]]:
    """The last line of every run."""
    lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    return list({line["run"]: line for line in lines}.values())


if __name__ == "__main__":
    main()
