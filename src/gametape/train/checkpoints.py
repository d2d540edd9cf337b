"""The state of a run on disk: whole or not there. The last few are kept.

The weights of a checkpoint are a directory that `transformers` loads. Beside them lie the optimiser's tensors and all
counters, so that a run that begins again comes to the same numbers.
"""

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from gametape.core.errors import BadInput, GametapeError
from gametape.engines.model_names import list_checkpoints
from gametape.record.atomic import sync_directory

Tensors = Mapping[str, Tensor]


class CheckpointNotSaved(GametapeError):
    """A checkpoint could not be written. What was there before is untouched."""

    exit_code = 3


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to go on. `files` make the weights a model that others can open."""

    weights: Tensors
    state: dict[str, Any]
    optimizer: Tensors = field(default_factory=dict)
    teacher: Tensors = field(default_factory=dict)
    """The weights of a slow teacher, where there is one."""
    files: Mapping[str, bytes] = field(default_factory=dict)


def save(directory: Path, step: int, checkpoint: Checkpoint, keep: int) -> Path:
    """Write it beside the others, give it its name in one move, and let go of the oldest."""
    place, begun = directory / f"{step:08}", _hidden(directory, step)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        begun.mkdir()
        _write(begun, checkpoint)
        if place.exists():
            _remove(place)
        begun.rename(place)
        sync_directory(directory)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(begun, ignore_errors=True)
        before = latest(directory)
        kept = f"{before} is intact" if before else "there is none before it"
        raise CheckpointNotSaved(f"checkpoint {step} could not be written: {_why(error)}; {kept}") from error
    for old in list_checkpoints(directory)[:-keep]:
        _remove(old)
    return place


def _hidden(directory: Path, step: int) -> Path:
    """A name that is never taken for a checkpoint's."""
    return directory / f".{step:08}.{secrets.token_hex(4)}"


def _remove(directory: Path) -> None:
    """Out of sight in one move, then for good."""
    aside = directory.rename(_hidden(directory.parent, int(directory.name)))
    shutil.rmtree(aside, ignore_errors=True)


def load(directory: Path) -> Checkpoint:
    try:
        return Checkpoint(
            weights=load_file(directory / "model.safetensors"),
            state=json.loads((directory / "state.json").read_text(encoding="utf-8")),
            optimizer=load_file(directory / "optimizer.safetensors"),
            teacher=load_file(directory / "teacher.safetensors")
            if (directory / "teacher.safetensors").exists()
            else {},
        )
    except (OSError, SafetensorError, ValueError) as error:
        raise BadInput(f"{directory}: not a checkpoint that can be read: {_why(error)}") from error


def latest(directory: Path) -> Path | None:
    found = list_checkpoints(directory)
    return found[-1] if found else None


def clear_unfinished(directory: Path) -> None:
    """What a killed process had begun to write. Only for whoever holds the run."""
    for path in directory.glob(".????????.*") if directory.is_dir() else ():
        shutil.rmtree(path, ignore_errors=True)


def _write(directory: Path, checkpoint: Checkpoint) -> None:
    for name, content in checkpoint.files.items():
        (directory / name).write_bytes(content)
    (directory / "state.json").write_text(json.dumps(checkpoint.state), encoding="utf-8")
    kinds = {"model": checkpoint.weights, "optimizer": checkpoint.optimizer, "teacher": checkpoint.teacher}
    for name, tensors in kinds.items():
        if tensors or name != "teacher":
            apart = {key: tensor.detach().contiguous().clone() for key, tensor in tensors.items()}
            save_file(apart, directory / f"{name}.safetensors", metadata={"format": "pt"})
    for path in directory.iterdir():
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    sync_directory(directory)


def _why(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split())
