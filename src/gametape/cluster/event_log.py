"""What became of the parts of a run on a cluster: `cluster.jsonl` in its directory, a line of JSON for each event."""

import json
import threading
import time
from pathlib import Path
from typing import Any, Literal

EventKind = Literal["up", "lost", "replayed"]
EVENTS = "cluster.jsonl"


class EventLog:
    """Appends; a run that goes on goes on with it. It says nothing that a run would need."""

    def __init__(self, directory: Path) -> None:
        self._path, self._lock = directory / EVENTS, threading.Lock()

    def write(self, event: EventKind, part: str, epoch: int, **values: Any) -> None:
        """`part` is `sampler 0` or `learner`; `epoch` counts what the driver has begun, so that no two of its parts
        have the same."""
        line = {"time": round(time.time(), 3), "event": event, "part": part, "epoch": epoch, **values}
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
