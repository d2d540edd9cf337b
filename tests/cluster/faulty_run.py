"""A run on a cluster of one node in which things are made to go wrong, and how long it takes until it goes on."""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from gametape.cluster.event_log import EVENTS
from gametape.core.config import RunConfig
from gametape.record.json_lines import read_lines
from gametape.train import checkpoints
from gametape.train.run_directory import RunDirectory, read_metrics
from tests.patience import wait_until
from tests.ray_cluster import start_train

FaultKind = Literal["sampler killed", "sampler stopped", "rank killed", "rank stopped", "driver killed", "disk full"]
FAULTS: tuple[FaultKind, ...] = (
    "sampler killed",
    "sampler stopped",
    "rank killed",
    "rank stopped",
    "driver killed",
    "disk full",
)
HEARTBEAT = 8.0
CONFIG: dict[str, Any] = {
    "arm": "tests.train.counting_arm:CountingArm",
    "tasks": "worlds:easy",
    "ranks": 2,
    "episodes": 100_000,
    "tiny": {"layers": 2, "width": 32, "heads": 2, "window": 256},
    "warm": {"episodes": 64, "batch": 16, "hint_share": 0.0},
    "optim": {"micro_batch_tokens": 400},
    "rl": {"groups": 2, "group_size": 2, "asynchronous": True, "retire_samples": 10_000},
    "eval": {"every": 0, "episodes": 2},
    "checkpoint": {"every": 3, "keep": 2},
    "cluster": {"samplers": 2, "heartbeat_seconds": HEARTBEAT, "object_store_mb": 100},
}


@dataclass(frozen=True)
class Recovery:
    """What became of a fault. Times are in seconds."""

    kind: FaultKind
    noticed: float
    """From the fault to the moment in which the run knew of it."""
    recovered: float
    """From there until what was lost was there again and had caught up."""
    requests: int = 0
    """Prompts whose rollouts had to be played again."""
    updates: int = 0
    """Updates that had to be computed again."""


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class FaultyRun:
    """A run under way. The driver's processes are found by what the run itself writes down."""

    def __init__(self, root: Path, network: str, seed: int, address: str = "local", own_disk: bool = True) -> None:
        """`own_disk` is a small one for checkpoints, which can be filled. Processes in other networks that are there
        already do not see it."""
        self.root, self._network, self._address, self._dice = root, network, address, random.Random(seed)
        directory = RunDirectory(root)
        directory.create(RunConfig.model_validate(CONFIG))
        self._checkpoints = directory.checkpoints
        self._own_disk = own_disk
        if own_disk:
            self._checkpoints.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", self._checkpoints], check=True)
        self.process = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self._kill()
        if self._own_disk:
            subprocess.run(["umount", "--lazy", self._checkpoints], check=True)

    @property
    def events(self) -> list[dict[str, Any]]:
        path = self.root / EVENTS
        return list(read_lines(path)) if path.exists() else []

    @property
    def updates(self) -> int:
        metrics = self.root / "metrics.jsonl"
        return max((line["step"] for line in read_metrics(metrics)), default=0) if metrics.exists() else 0

    def suffer(self, kind: FaultKind) -> Recovery:
        """Do it when the run has got on a little, and wait until the run has got over it."""
        self.get_on(self._dice.randint(1, 3))
        time.sleep(self._dice.random())
        part, _, how = kind.partition(" ")
        if part == "driver":
            return self._lose_driver(kind)
        if part == "disk":
            return self._fill_disk(kind)
        number, pid = self._victim(part)
        known, began = len(self.events), time.time()
        os.kill(pid, signal.SIGKILL if how == "killed" else signal.SIGSTOP)
        lost = self._event(known, "lost", number)
        again = self._event(known, "up" if part == "sampler" else "replayed", number)
        wait_until(lambda: not is_there(pid), f"the end of the {kind} process")
        return Recovery(
            kind,
            lost["time"] - began,
            again["time"] - lost["time"],
            lost.get("requests", 0),
            again.get("updates", 0),
        )

    def get_on(self, updates: int) -> None:
        """Wait for more updates."""
        wanted = self.updates + updates
        self._wait(lambda: self.updates >= wanted, "more updates")

    def finish(self, updates: int = 2) -> dict[str, Any]:
        """End it there and then, and go on for a few updates more."""
        self._kill()
        last = checkpoints.latest(self._checkpoints)
        assert last is not None
        episodes = checkpoints.load_state(last)["progress"]["episodes"] + 4 * updates
        self.process = self._start(f"episodes={episodes}")
        out, errors = self.process.communicate()
        assert self.process.returncode == 0, errors
        answer: dict[str, Any] = json.loads(out.splitlines()[-1])
        return answer

    def _start(self, *settings: str) -> "subprocess.Popen[str]":
        changes = [word for setting in settings for word in ("--set", setting)]
        return start_train(self._network, "--resume", self.root, "--ray", self._address, "--json", *changes)

    def _kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _wait(self, condition: Callable[[], object], what: str) -> None:
        """Looking all the time would take the processor from what is looked at."""
        wait_until(lambda: time.sleep(0.2) or self.process.poll() is not None or condition(), what)
        assert self.process.poll() is None, self.process.communicate()[1]

    def _victim(self, part: str) -> tuple[str, int]:
        """A part that is there now, by its name in the events, and a process of it."""
        latest = {event["part"]: event for event in self.events if event["event"] == "up"}
        if part == "rank":
            return "learner", self._dice.choice(latest["learner"]["pids"])
        name = self._dice.choice(sorted(name for name in latest if name.startswith(part)))
        return name, latest[name]["pid"]

    def _event(self, known: int, kind: str, part: str) -> dict[str, Any]:
        def found() -> Iterator[dict[str, Any]]:
            return (one for one in self.events[known:] if (one["event"], one["part"]) == (kind, part))

        self._wait(lambda: any(found()), f"{part} to be {kind}")
        return next(found())

    def _lose_driver(self, kind: FaultKind) -> Recovery:
        """Nobody is left to notice: that is up to whoever starts it again."""
        self._kill()
        before = self.updates
        return self._begin_again(kind, 0.0, before)

    def _fill_disk(self, kind: FaultKind) -> Recovery:
        """The place of the checkpoints has no room for another one."""
        filler, began = self._checkpoints / "filler", time.time()
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(1 << 12))
        _, errors = self.process.communicate()
        filler.unlink()
        assert self.process.returncode == 3, errors
        assert "could not be written: No space left on device" in errors, errors
        return self._begin_again(kind, time.time() - began, self.updates)

    def _begin_again(self, kind: FaultKind, noticed: float, before: int) -> Recovery:
        began = time.time()
        last = checkpoints.latest(self._checkpoints)
        assert last is not None
        self.process = self._start()
        self._wait(lambda: self.updates < before, "what comes again to be dropped") if before > int(last.name) else None
        self._wait(lambda: self.updates > int(last.name), "another update")
        return Recovery(kind, noticed, time.time() - began, updates=before - int(last.name))
