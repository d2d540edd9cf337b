"""What lies at a path: a trajectory, an attempt, a goal, a thread, a training run, an evaluation, a demo, a home."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gametape.core.errors import BadInput
from gametape.record.errors import printable_path, read_error
from gametape.record.regular_file import is_regular
from gametape.record.trajectory_discovery import is_trajectory_file, select_files

RunKind = Literal["trajectory", "attempt", "goal", "thread", "training", "eval", "demo", "home", "directory"]

MOST_FILES = 20_000
"""The most trajectories that are taken from one directory."""
LAST = "last"
"""What stands for the newest goal or thread."""
_MARKERS: tuple[tuple[RunKind, str], ...] = (
    ("goal", "goal.json"),
    ("thread", "thread.json"),
    ("demo", "demo.json"),
    ("training", "metrics.jsonl"),
    ("training", "config.toml"),
    ("eval", "attempts.jsonl"),
    ("attempt", "trajectory.json"),
    ("attempt", "trajectory.jsonl"),
    ("home", "goals"),
    ("home", "threads"),
)
"""The entry of a directory that says what it is; the first that is there decides."""
_ID = re.compile(r"(goal|thread)-[0-9a-f-]+")


@dataclass(frozen=True)
class RunPlace:
    kind: RunKind
    path: Path

    @property
    def trajectory(self) -> Path | None:
        """The one record of this place; None where there may be several, or none yet."""
        if self.kind == "trajectory":
            return self.path
        closed = self.path / "trajectory.json"
        record = closed if is_regular(closed) else self.path / "trajectory.jsonl"
        return record if self.kind in ("attempt", "goal", "thread") and is_regular(record) else None

    def trajectories(self) -> list[Path]:
        """Every record at or below this place, by name."""
        if self.trajectory:
            return [self.trajectory]
        if not self.path.is_dir():
            return []
        return select_files(self.path, (".json", ".jsonl"), is_trajectory_file)[0][:MOST_FILES]


def find_place(path: Path, home: Path) -> RunPlace:
    """What a person means by a path, by the id of a goal or a thread below `home`, or by `last`."""
    try:
        if not path.exists():
            path = _by_id(path, home)
        if path.is_file():
            return RunPlace("trajectory", path)
        if not path.is_dir():
            raise BadInput(f"{printable_path(path)}: neither a file nor a directory")
        return RunPlace(next((kind for kind, name in _MARKERS if _marks(path / name, kind)), "directory"), path)
    except OSError as error:
        raise read_error(path, error) from None
    except ValueError:
        raise BadInput(f"{printable_path(path)}: not a path") from None


def _marks(entry: Path, kind: RunKind) -> bool:
    return entry.is_dir() if kind == "home" else is_regular(entry)


def child_places(root: Path, kinds: tuple[RunKind, ...]) -> list[RunPlace]:
    """The places of these kinds directly below a directory, by name."""
    try:
        children = sorted(child for child in root.iterdir() if child.is_dir())
    except OSError as error:
        raise read_error(root, error) from None
    return [place for child in children if (place := find_place(child, root)).kind in kinds]


def _by_id(path: Path, home: Path) -> Path:
    name = str(path)
    if name == LAST:
        records = [*home.glob("goals/*/goal.json"), *home.glob("threads/*/thread.json")]
        if not records:
            raise BadInput(f"{name}: there is no goal or thread in {printable_path(home)} yet")
        return max(records, key=lambda record: record.stat().st_mtime).parent
    if match := _ID.fullmatch(name):
        kind = match[1]
        found = [child for child in (home / f"{kind}s").glob(f"{name}*") if (child / f"{kind}.json").is_file()]
        if len(found) == 1:
            return found[0]
        if found:
            raise BadInput(f"{name}: begins the names of {len(found)} {kind}s; give more of it")
        raise BadInput(f"{name}: no such {kind}; gametape {kind} list shows them")
    raise BadInput(f"{printable_path(path)}: no such file or directory")
