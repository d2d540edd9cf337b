"""A checkpoint of a learner, as a run writes it."""

from pathlib import Path
from typing import Any

from gametape.train.checkpoints import CheckpointWriter
from gametape.train.learner import PolicyLearner


def save_checkpoint(
    directory: Path, step: int, learner: PolicyLearner, state: dict[str, Any] | None = None, keep: int = 2
) -> Path:
    """On disk when this returns."""
    writer = CheckpointWriter(directory, keep)
    writer.begin(step, state or {}, learner.save)
    saved = writer.finish()
    assert saved
    return saved
