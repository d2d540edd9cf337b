"""Where a run lies: `RUN/{config.toml, metrics.jsonl, start/, checkpoints/}`. One process at a time holds it."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gametape.agent.episode import Episode
from gametape.coach.hint_store import with_stored_hints
from gametape.core.config import RunConfig
from gametape.core.errors import BadInput
from gametape.core.hint import Hint
from gametape.evals.episode_file import episode_to_trajectory
from gametape.record.atomic import write_all, write_atomically
from gametape.record.errors import write_error
from gametape.record.trajectory_file import save_trajectory
from gametape.train import checkpoints
from gametape.train.config_file import config_to_toml, read_config
from gametape.train.teacher import TargetMetrics

START_PREFIX = ".start-"
"""What names begin with while the first weights are made."""
_LOCK = ".lock"


@dataclass(frozen=True)
class RunDirectory:
    root: Path

    @property
    def config(self) -> Path:
        return self.root / "config.toml"

    @property
    def metrics(self) -> Path:
        return self.root / "metrics.jsonl"

    @property
    def start(self) -> Path:
        """The weights that the run began with, as a model."""
        return self.root / "start"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def targets(self) -> Path:
        """What each target did, a line of JSON each."""
        return self.root / "targets.jsonl"

    @property
    def behaviour(self) -> Path:
        """What some rollouts said and did, a line of JSON for each turn."""
        return self.root / "behaviour.jsonl"

    @property
    def trajectories(self) -> Path:
        """Some rollouts with the coach's targets on them."""
        return self.root / "trajectories"

    def create(self, config: RunConfig) -> None:
        """A new run: whatever is there already is not written over."""
        self.check_free()
        self.root.mkdir(parents=True, exist_ok=True)
        write_atomically(self.config, config_to_toml(config).encode())

    def check_free(self) -> None:
        """A run that never got beyond its configuration is no run."""
        if self.start.exists() or self.checkpoints.exists():
            raise BadInput(f"{self.root}: there is a run here already; give --resume {self.root}, or another --out")
        ours = {self.config.name, _LOCK}
        if self.root.is_dir() and any(path.name not in ours for path in self.root.iterdir()):
            raise BadInput(f"{self.root}: is not empty; give --out a new directory")

    def resume_config(self) -> RunConfig:
        """The configuration of a run that is there."""
        if not self.config.exists():
            raise BadInput(f"{self.root}: there is no run here to resume (no config.toml)")
        return read_config(self.config)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Alone, or not at all."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.root / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise BadInput(f"{self.root}: cannot be written: {error.strerror}") from error
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise BadInput(f"{self.root}: another process is training here") from None
            checkpoints.clear_unfinished(self.checkpoints)
            for begun in self.root.glob(f"{START_PREFIX}*"):
                shutil.rmtree(begun, ignore_errors=True)
            yield
        finally:
            os.close(fd)


def save_annotated_trajectory(
    episode: Episode, hints: Sequence[Hint], advantage: float, name: str, directory: Path
) -> Path:
    """One rollout as a trajectory file, with its targets and with the advantage that its tokens got."""
    trajectory = with_stored_hints(episode_to_trajectory(episode, "policy", name), hints)
    extra = dict(trajectory.extra or {})
    extra["gametape"] = {**extra.get("gametape", {}), "advantage": advantage}
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    save_trajectory(path, trajectory.model_copy(update={"extra": extra}))
    return path


def append_target_metrics(path: Path, update: int, metrics: Sequence[TargetMetrics]) -> None:
    """A line for each target that took part in an update: log-probabilities, divergences and choices by token."""
    if not metrics:
        return
    lines = b"".join(json.dumps({"update": update, **one.to_dict()}).encode() + b"\n" for one in metrics)
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        write_all(fd, lines)
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        os.close(fd)


def file_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
