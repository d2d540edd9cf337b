"""Checkpoints: the state of a run on disk, written whole or not at all. The last few are kept.

model/                  weights, configuration and tokenizer: what transformers, vLLM and every verb load as it is
optimizer.safetensors   the optimiser's tensors
teacher.safetensors     the weights of a slow teacher, where there is one
adapter/                a low-rank adapter by itself, where one is trained: what peft and vLLM load beside the start
state.json              all counters, so that a resumed run computes the same numbers
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
from gametape.engines.model_names import checkpoint_model, list_checkpoints
from gametape.record.atomic import sync_directory

Tensors = Mapping[str, Tensor]
_MODEL, _ADAPTER = "model", "adapter"


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
    adapter: Tensors = field(default_factory=dict)
    """The tensors of a low-rank adapter, where one is trained; `weights` have it in them."""
    adapter_config: str = ""


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
    """Also one of an earlier version, whose weights lie beside its state."""
    teacher, adapter = directory / "teacher.safetensors", directory / _ADAPTER / "adapter_model.safetensors"
    try:
        return Checkpoint(
            weights=load_file(checkpoint_model(directory) / "model.safetensors"),
            state=load_state(directory),
            optimizer=load_file(directory / "optimizer.safetensors"),
            teacher=load_file(teacher) if teacher.exists() else {},
            adapter=load_file(adapter) if adapter.exists() else {},
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


def save_model(directory: Path, weights: Tensors, files: Mapping[str, bytes]) -> None:
    """A new directory that `transformers` and other programs load: the weights, and the files that describe them."""
    directory.mkdir()
    for name, content in files.items():
        (directory / name).write_bytes(content)
    _save_tensors(directory / "model.safetensors", weights)
    _sync(directory)


def _write(directory: Path, checkpoint: Checkpoint) -> None:
    save_model(directory / _MODEL, checkpoint.weights, checkpoint.files)
    (directory / "state.json").write_text(json.dumps(checkpoint.state), encoding="utf-8")
    _save_tensors(directory / "optimizer.safetensors", checkpoint.optimizer)
    if checkpoint.adapter:
        adapter = directory / _ADAPTER
        adapter.mkdir()
        (adapter / "adapter_config.json").write_text(checkpoint.adapter_config, encoding="utf-8")
        _save_tensors(adapter / "adapter_model.safetensors", checkpoint.adapter)
        _sync(adapter)
    if checkpoint.teacher:
        _save_tensors(directory / "teacher.safetensors", checkpoint.teacher)
    _sync(directory)


def _save_tensors(path: Path, tensors: Tensors) -> None:
    copies = {key: tensor.detach().contiguous().clone() for key, tensor in tensors.items()}
    save_file(copies, path, metadata={"format": "pt"})


def _sync(directory: Path) -> None:
    """All of it is on disk."""
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
