"""The learner's tensors on disk, by torch.distributed.checkpoint: every rank writes what it has of them, and any number
of ranks reads them again.

Tensors are written beside training: `begin_writing` returns as soon as they are copied. Checkpoints of earlier
versions, whose tensors lie whole in a few files, are read too.
"""

import pickle
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta, TensorStorageMetadata

from gametape.core.errors import BadInput, GametapeError
from gametape.engines.model_names import SHARDS, checkpoint_model
from gametape.train.ranks import Ranks
from gametape.train.shards import as_sharded

WEIGHTS, OPTIMIZER, TEACHER = "weights/", "optimizer/", "teacher/"
"""What the names of tensors begin with."""
_PEFT_PREFIX = "base_model.model."
_METADATA_MODULE = "torch.distributed.checkpoint.metadata"
_METADATA_NAMES = {
    ("torch", "Size"),
    ("torch.serialization", "_get_layout"),
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
    ("pathlib", "PosixPath"),
    ("pathlib._local", "PosixPath"),
}
"""All that the file of torch's metadata names, besides what is in its own module and dtypes."""


class NotWritten(GametapeError):
    """Some file could not be written; its text says why."""

    exit_code = 3


def begin_writing(directory: Path, tensors: Mapping[str, Tensor], ranks: Ranks) -> "Future[Any]":
    """Copy tensors, and write the copies into a new directory beside whatever comes next. Every rank calls it."""
    _silence_single_process_hint()
    alone = ranks.world == 1
    writing: Future[Any] = dcp.async_save(
        dict(tensors), checkpoint_id=directory, process_group=ranks.background, no_dist=alone
    )
    return writing


def finish_writing(finish: Callable[[], object]) -> None:
    """Call what waits or writes, and tell in one line why it failed, if it does."""
    try:
        finish()
    except (OSError, SafetensorError, RuntimeError, CheckpointException) as error:
        raise NotWritten(reason(error)) from error


def saved_shapes(checkpoint: Path) -> dict[str, torch.Size]:
    """Of every tensor in a checkpoint."""
    if not (checkpoint / SHARDS).is_dir():
        return {name: tensor.shape for name, tensor in _whole_tensors(checkpoint).items()}
    try:
        entries = _Reader(checkpoint / SHARDS).read_metadata().state_dict_metadata.items()
    except (OSError, ValueError, pickle.UnpicklingError, EOFError, AttributeError, TypeError) as error:
        raise _unreadable(checkpoint, error) from error
    return {name: entry.size for name, entry in entries if isinstance(entry, TensorStorageMetadata)}


def read_into(checkpoint: Path, tensors: Mapping[str, Tensor], ranks: Ranks) -> None:
    """Fill tensors in place, sharded as they are here. Every rank calls it."""
    if not (checkpoint / SHARDS).is_dir():
        found = _whole_tensors(checkpoint)
        for name, own in tensors.items():
            if name not in found or found[name].shape != own.shape:
                raise _unreadable(checkpoint, ValueError(f"there is no {name} of the shape {list(own.shape)}"))
            with torch.no_grad():
                own.copy_(as_sharded(found[name], own) if own.dim() else found[name])
        return
    _silence_single_process_hint()
    reader = _Reader(checkpoint / SHARDS)
    try:
        dcp.load(dict(tensors), storage_reader=reader, process_group=ranks.background, no_dist=ranks.world == 1)
    except (OSError, ValueError, RuntimeError, pickle.UnpicklingError, CheckpointException) as error:
        raise _unreadable(checkpoint, error) from error


def reason(error: BaseException) -> str:
    """In one line, without what torch wraps around it."""
    if isinstance(error, CheckpointException) and error.failures:
        return reason(next(iter(error.failures.values()))[0])
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split())[:300]


def _unreadable(checkpoint: Path, error: BaseException) -> BadInput:
    return BadInput(f"{checkpoint}: not a checkpoint that can be read: {reason(error)}")


def _whole_tensors(checkpoint: Path) -> dict[str, Tensor]:
    """Of a checkpoint of an earlier version."""
    files = {
        WEIGHTS: [checkpoint_model(checkpoint) / "model.safetensors", checkpoint / "adapter/adapter_model.safetensors"],
        OPTIMIZER: [checkpoint / "optimizer.safetensors"],
        TEACHER: [checkpoint / "teacher.safetensors"],
    }
    try:
        return {
            prefix + name.removeprefix(_PEFT_PREFIX if prefix == WEIGHTS else ""): tensor
            for prefix, paths in files.items()
            for path in paths
            if path.exists()
            for name, tensor in load_file(path).items()
        }
    except (OSError, SafetensorError, ValueError) as error:
        raise _unreadable(checkpoint, error) from error


def _silence_single_process_hint() -> None:
    """One process by itself is what is meant."""
    warnings.filterwarnings("ignore", "torch.distributed is disabled, unavailable or uninitialized", UserWarning)


class _Reader(dcp.FileSystemReader):  # type: ignore[misc]
    """Torch keeps its metadata as a pickle, which could name anything; this one may name what metadata is made of."""

    def read_metadata(self, *_arguments: Any, **_options: Any) -> Metadata:
        with (Path(self.path) / ".metadata").open("rb") as file:
            metadata: Metadata = _MetadataUnpickler(file).load()
        metadata.storage_meta = metadata.storage_meta or StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata


class _MetadataUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        is_dtype = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        if module == _METADATA_MODULE or is_dtype or (module, name) in _METADATA_NAMES:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"its metadata names {module}.{name}")
