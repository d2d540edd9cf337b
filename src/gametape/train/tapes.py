"""What people will want to look at: rollouts with the coach's targets on them, and what each target did."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from gametape.agent.playing import Played
from gametape.coach.storing import with_targets
from gametape.core.hint import Hint
from gametape.evals.keeping import trajectory_of
from gametape.record.atomic import write_all
from gametape.record.files import save
from gametape.record.trouble import unwritable
from gametape.train.distilling import Distilled


def save_tape(played: Played, hints: Sequence[Hint], advantage: float, name: str, directory: Path) -> Path:
    """One rollout as a trajectory file, with its targets and with the advantage that its tokens got."""
    trajectory = with_targets(trajectory_of(played, "policy", name), hints)
    extra = dict(trajectory.extra or {})
    extra["gametape"] = {**extra.get("gametape", {}), "advantage": advantage}
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    save(path, trajectory.model_copy(update={"extra": extra}))
    return path


def append_targets(path: Path, update: int, distilled: Sequence[Distilled]) -> None:
    """A line for each target that took part in an update: log-probabilities, divergences and choices by token."""
    if not distilled:
        return
    lines = b"".join(json.dumps({"update": update, **one.plain()}).encode() + b"\n" for one in distilled)
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        write_all(fd, lines)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        os.close(fd)


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
