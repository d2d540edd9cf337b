"""The directory of a run, `RUN/{config.toml, metrics.jsonl, start/, checkpoints/}`, and the files in it. One process at
a time holds it. What is refused before anything of value was made leaves nothing there."""

import json
import math
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gametape.coach.hint_store import with_stored_hints
from gametape.core.config import RunConfig
from gametape.core.errors import BadInput
from gametape.evals.episode_file import episode_to_trajectory
from gametape.record.atomic import write_all, write_atomically
from gametape.record.errors import write_error
from gametape.record.json_lines import read_lines
from gametape.record.lock import require_lock
from gametape.record.trajectory_file import save_trajectory
from gametape.train import checkpoints
from gametape.train.config_changes import ConfigChange, find_changes, require_resumable
from gametape.train.config_file import config_to_toml, read_config
from gametape.train.early_checks import CONFIG, FROM_PYTHON, LOCK, check_free, holds_run
from gametape.train.rollouts import AnnotatedEpisode, TargetMetrics
from gametape.train.trackers import Tracker, flat_numbers

START_PREFIX = ".start-"
"""What names begin with while the first weights are made."""


@dataclass(frozen=True)
class RunDirectory:
    root: Path

    @property
    def config(self) -> Path:
        return self.root / CONFIG

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

    @property
    def history(self) -> Path:
        """What was changed when the run was resumed, a line of JSON for each time."""
        return self.root / "config-history.jsonl"

    def create(self, config: RunConfig, given: Sequence[str] = ()) -> None:
        """A new run: whatever is there already is not written over."""
        self.check_free()
        self.root.mkdir(parents=True, exist_ok=True)
        if given:
            write_atomically(self.root / FROM_PYTHON, json.dumps({"given": list(given)}).encode())
        write_atomically(self.config, config_to_toml(config).encode())

    @contextmanager
    def begin(self, config: RunConfig, given: Sequence[str] = ()) -> Iterator[None]:
        """A new run, held alone for the block, that is `given` these things as objects. If the block fails before
        anything of value was made, everything is as it was before; an interrupted run stays, and can be resumed."""
        self.check_free()
        missing = [path for path in (self.root, *self.root.parents) if not path.exists()]
        earlier = self.config.read_bytes() if self.config.is_file() else None
        kept = {path.name for path in self.root.iterdir()} if self.root.is_dir() else set()
        try:
            with self.lock():
                try:
                    self.create(config, given)
                    yield
                except Exception:
                    if not self._has_work(config):
                        self._clear(kept, earlier)
                    raise
        except Exception:
            _remove_empty(missing)
            raise

    def check_free(self) -> None:
        check_free(self.root)

    @property
    def holds_run(self) -> bool:
        return holds_run(self.root)

    def resume_config(self, settings: Iterable[str] = ()) -> RunConfig:
        """The configuration of a run that is there, with some settings changed (`key=value`)."""
        if not self.config.exists():
            raise BadInput(f"{self.root}: there is no run here to resume (no config.toml)")
        return read_config(self.config, settings)

    def change_config(self, config: RunConfig) -> list[ConfigChange]:
        """Go on with another length or another observation, and write that down in `history`. Call it with the lock
        held. Raises `BadInput` for changes that would make another experiment of the run."""
        changes = find_changes(self.resume_config(), config)
        if not changes:
            return []
        require_resumable(changes, str(self.root))
        last = checkpoints.latest(self.checkpoints)
        progress = checkpoints.load_state(last)["progress"] if last else {"step": 0, "episodes": 0}
        if config.episodes < progress["episodes"]:
            raise BadInput(f"{self.root}: episodes: the run has had {progress['episodes']}; give at least as many")
        entry = {"step": progress["step"], "episodes": progress["episodes"]}
        entry["changes"] = {name: {"before": before, "after": after} for name, before, after in changes}
        if not self.history.exists() or _line(entry) not in self.history.read_bytes().splitlines(keepends=True)[-1:]:
            _append(self.history, _line(entry))
        write_atomically(self.config, config_to_toml(config).encode())
        return changes

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Alone, or not at all."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.root / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise BadInput(f"{self.root}: cannot be written: {error.strerror}") from error
        try:
            require_lock(fd, self.root, "another process is training here")
            checkpoints.clear_unfinished(self.checkpoints)
            for begun in self.root.glob(f"{START_PREFIX}*"):
                shutil.rmtree(begun, ignore_errors=True)
            yield
        finally:
            os.close(fd)

    def _has_work(self, config: RunConfig) -> bool:
        """Whether something is there that took time to make: a copy of weights did not."""
        warmed = config.model == "tiny" and config.warm.episodes > 0 and self.start.exists()
        return warmed or bool(file_size(self.metrics)) or checkpoints.latest(self.checkpoints) is not None

    def _clear(self, kept: set[str], config: bytes | None) -> None:
        """Delete all but files of these names; the configuration is as it was."""
        for path in self.root.iterdir():
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        if config is not None:
            write_atomically(self.config, config)


def _remove_empty(directories: Iterable[Path]) -> None:
    """Those that hold nothing, innermost first."""
    with suppress(OSError):
        for path in directories:
            path.rmdir()


def save_annotated_trajectory(annotated: AnnotatedEpisode, directory: Path) -> Path:
    """One rollout as a trajectory file, with its targets, the advantage that its tokens got, what the update that
    learned from it saw at them, and the coach's forks."""
    trajectory = episode_to_trajectory(annotated.episode, "policy", annotated.name)
    trajectory = with_stored_hints(trajectory, annotated.hints, annotated.forks)
    extra = dict(trajectory.extra or {})
    told: dict[str, Any] = {"advantage": annotated.advantage}
    if annotated.readings:
        told["readings"] = [reading.to_dict() for reading in annotated.readings]
    extra["gametape"] = {**extra.get("gametape", {}), **told}
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{annotated.name}.json"
    save_trajectory(path, trajectory.model_copy(update={"extra": extra}))
    return path


def append_target_metrics(path: Path, update: int, metrics: Sequence[TargetMetrics]) -> None:
    """A line for each target that took part in an update: log-probabilities, divergences and choices by token."""
    if not metrics:
        return
    _append(path, b"".join(json.dumps({"update": update, **target.to_dict()}).encode() + b"\n" for target in metrics))


def _append(path: Path, lines: bytes) -> None:
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        write_all(fd, lines)
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        os.close(fd)


def file_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


class MetricsLog:
    """Appends lines of JSON. On resume it first drops what was written after the checkpoint: that will come again. The
    numbers of each line go to `trackers` too."""

    def __init__(self, path: Path, size: int = 0, trackers: Sequence[Tracker] = ()) -> None:
        self._path, self._trackers = path, trackers
        truncate_file(path, size)
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def write(self, kind: str, step: int, **values: Any) -> None:
        try:
            write_all(self._fd, _line({"kind": kind, "step": step, **values}))
        except OSError as error:
            raise write_error(self._path, error) from error
        for tracker in self._trackers:
            tracker.log(step, flat_numbers(kind, values))

    def sync(self) -> int:
        """Its size, all of which is on disk."""
        os.fsync(self._fd)
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)
        for tracker in self._trackers:
            tracker.close()


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    return (entry for entry in read_lines(path) if "step" in entry)


def truncate_file(path: Path, size: int) -> None:
    """Leave the first bytes of a file, if there is one."""
    if path.exists() and path.stat().st_size > size:
        os.truncate(path, size)


def _line(entry: dict[str, Any]) -> bytes:
    """Numbers that are none are written as null: the file stays JSON whatever happens to a loss."""
    return json.dumps(_finite(entry), allow_nan=False).encode() + b"\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
