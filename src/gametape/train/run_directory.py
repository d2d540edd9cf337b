"""Where a run lies: `RUN/{config.toml, metrics.jsonl, start/, checkpoints/}`. One process at a time holds it."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gametape.core.config import RunConfig
from gametape.core.errors import BadInput
from gametape.record.atomic import write_atomically
from gametape.train import checkpoints
from gametape.train.config_file import read_config, write_config

STARTING = ".start-"
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

    def begin(self, config: RunConfig) -> None:
        """A new run: whatever is there already is not written over."""
        self.refuse_taken()
        self.root.mkdir(parents=True, exist_ok=True)
        write_atomically(self.config, write_config(config).encode())

    def refuse_taken(self) -> None:
        """A run that never got beyond its configuration is no run."""
        if self.start.exists() or self.checkpoints.exists():
            raise BadInput(f"{self.root}: there is a run here already; give --resume {self.root}, or another --out")
        ours = {self.config.name, _LOCK}
        if self.root.is_dir() and any(path.name not in ours for path in self.root.iterdir()):
            raise BadInput(f"{self.root}: is not empty; give --out a new directory")

    def take_up(self) -> RunConfig:
        """The configuration of a run that is there."""
        if not self.config.exists():
            raise BadInput(f"{self.root}: there is no run here to resume (no config.toml)")
        return read_config(self.config)

    @contextmanager
    def held(self) -> Iterator[None]:
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
            for begun in self.root.glob(f"{STARTING}*"):
                shutil.rmtree(begun, ignore_errors=True)
            yield
        finally:
            os.close(fd)
