"""Checkpoints: the state of a run on disk, written whole or not at all. The last few are kept.

The weights of a checkpoint are a directory that `transformers` loads. Beside them are the optimiser's tensors and all
counters, so that a resumed run computes the same numbers.
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
    """A checkpoint could not be written. Earlier ones are untouched."""

    exit_code = 3


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a run needs to continue. `files` make the weights a model that other programs can load."""

    weights: Tensors
    state: dict[str, Any]
    optimizer: Tensors = field(default_factory=dict)
    teacher: Tensors = field(default_factory=dict)
    """The weights of a slow teacher, where there is one."""
    files: Mapping[str, bytes] = field(default_factory=dict)


def save(directory: Path, step: int, checkpoint: Checkpoint, keep: int) -> Path:
    """Write it under a temporary name, rename it in one step, and delete the oldest beyond `keep`."""
    target, unfinished = directory / f"{step:08}", _hidden(directory, step)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        unfinished.mkdir()
        _write(unfinished, checkpoint)
        if target.exists():
            _remove(target)
        unfinished.rename(target)
        sync_directory(directory)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        previous = latest(directory)
        remaining = f"{previous} is intact" if previous else "there is none before it"
        raise CheckpointNotSaved(f"checkpoint {step} could not be written: {_why(error)}; {remaining}") from error
    for old in list_checkpoints(directory)[:-keep]:
        _remove(old)
    return target


def _hidden(directory: Path, step: int) -> Path:
    """A temporary name that is never mistaken for a checkpoint's."""
    return directory / f".{step:08}.{secrets.token_hex(4)}"


def _remove(directory: Path) -> None:
    """Rename it in one step, then delete it: a kill leaves no half checkpoint."""
    aside = directory.rename(_hidden(directory.parent, int(directory.name)))
    shutil.rmtree(aside, ignore_errors=True)


def load_state(directory: Path) -> dict[str, Any]:
    """A checkpoint without its tensors."""
    try:
        state: dict[str, Any] = json.loads((directory / "state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{directory}: not a checkpoint that can be read: {_why(error)}") from error
    return state


def load(directory: Path) -> Checkpoint:
    try:
        return Checkpoint(
            weights=load_file(directory / "model.safetensors"),
            state=load_state(directory),
            optimizer=load_file(directory / "optimizer.safetensors"),
            teacher=load_file(directory / "teacher.safetensors")
            if (directory / "teacher.safetensors").exists()
            else {},
        )
    except (OSError, SafetensorError, ValueError) as error:
        raise BadInput(f"{directory}: not a checkpoint that can be read: {_why(error)}") from error


def latest(directory: Path) -> Path | None:
    checkpoints = list_checkpoints(directory)
    return checkpoints[-1] if checkpoints else None


def clear_unfinished(directory: Path) -> None:
    """Delete what a killed process had begun to write. Call it only with the run's lock held."""
    for path in directory.glob(".????????.*") if directory.is_dir() else ():
        shutil.rmtree(path, ignore_errors=True)


def _write(directory: Path, checkpoint: Checkpoint) -> None:
    for name, content in checkpoint.files.items():
        (directory / name).write_bytes(content)
    (directory / "state.json").write_text(json.dumps(checkpoint.state), encoding="utf-8")
    files = {"model": checkpoint.weights, "optimizer": checkpoint.optimizer, "teacher": checkpoint.teacher}
    for name, tensors in files.items():
        if tensors or name != "teacher":
            copies = {key: tensor.detach().contiguous().clone() for key, tensor in tensors.items()}
            save_file(copies, directory / f"{name}.safetensors", metadata={"format": "pt"})
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
