"""Checkpoints: the state of a run on disk, written whole or not at all. The last few are kept.

model/       weights, configuration and tokenizer: what transformers, vLLM and every verb load as it is
adapter/     a low-rank adapter by itself, where one is trained: what peft and vLLM load beside the start
shards/      what the learner goes on with, by torch.distributed.checkpoint: a file for each rank, read by any number
state.json   all counters, so that a resumed run computes the same numbers
files.json   the sizes of all other files: a checkpoint with a file that has another size is passed over

A checkpoint is written beside training under a hidden name, and renamed when all of it is on disk.
"""

import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from gametape.core.errors import BadInput, GametapeError
from gametape.engines.model_names import FILE_SIZES, list_checkpoints
from gametape.record.atomic import sync_directory
from gametape.train.checkpoint_shards import NotWritten, reason

Tensors = Mapping[str, Tensor]


class CheckpointNotSaved(GametapeError):
    """A checkpoint could not be written. Earlier ones are untouched."""

    exit_code = 3


class CheckpointWriter:
    """Writes the checkpoints of a run, one at a time, beside whatever the run does next."""

    def __init__(self, directory: Path, keep: int) -> None:
        self._directory, self._keep = directory, keep
        self._thread = ThreadPoolExecutor(1, "checkpoints")
        self._pending: Future[Path] | None = None

    def begin(self, step: int, state: Mapping[str, Any], save: Callable[[Path], "Future[None]"]) -> None:
        """Finish the one before, and begin another: `save` copies what the learner has, and writes it into a directory.
        From then on nothing of the state is looked at again."""
        self.finish()
        text, unfinished = json.dumps(state), _hidden(self._directory, step)
        try:
            unfinished.mkdir(parents=True)
            written = save(unfinished)
        except (OSError, NotWritten) as error:
            raise self._not_saved(step, unfinished, error) from error
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        self._pending = self._thread.submit(self._commit, step, unfinished, text, written)

    def finish(self) -> Path | None:
        """Wait until the last one is on disk, and return where it is. Raises what kept it from being written."""
        pending, self._pending = self._pending, None
        return pending.result() if pending else None

    def _commit(self, step: int, unfinished: Path, state: str, written: "Future[None]") -> Path:
        """Rename it in one step, and delete the oldest beyond those that are kept."""
        target = self._directory / f"{step:08}"
        try:
            written.result()
            (unfinished / "state.json").write_text(state, encoding="utf-8")
            sizes = {str(path.relative_to(unfinished)): path.stat().st_size for path in _files(unfinished)}
            (unfinished / FILE_SIZES).write_text(json.dumps(sizes), encoding="utf-8")
            _sync(unfinished)
            if target.exists():
                _remove(target)
            unfinished.rename(target)
            sync_directory(self._directory)
        except (OSError, NotWritten) as error:
            raise self._not_saved(step, unfinished, error) from error
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        for old in list_checkpoints(self._directory)[: -self._keep]:
            _remove(old)
        return target

    def _not_saved(self, step: int, unfinished: Path, error: Exception) -> CheckpointNotSaved:
        shutil.rmtree(unfinished, ignore_errors=True)
        previous = latest(self._directory)
        remaining = f"{previous} is intact" if previous else "there is none before it"
        return CheckpointNotSaved(f"checkpoint {step} could not be written: {reason(error)}; {remaining}")


def load_state(directory: Path) -> dict[str, Any]:
    """A checkpoint without its tensors."""
    try:
        state: dict[str, Any] = json.loads((directory / "state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{directory}: not a checkpoint that can be read: {reason(error)}") from error
    return state


def latest(directory: Path) -> Path | None:
    checkpoints = list_checkpoints(directory)
    return checkpoints[-1] if checkpoints else None


def clear_unfinished(directory: Path) -> None:
    """Delete what a killed process had begun to write. Call it only with the run's lock held."""
    for path in directory.glob(".????????.*") if directory.is_dir() else ():
        shutil.rmtree(path, ignore_errors=True)


def save_model(directory: Path, weights: Tensors, files: Mapping[str, bytes]) -> None:
    """A new directory that `transformers` and other programs load: the weights, and the files that describe them."""
    _save_tensors(directory, "model.safetensors", weights, files)


def save_adapter(directory: Path, tensors: Tensors, config: str) -> None:
    """A new directory that `peft` and other programs load."""
    _save_tensors(directory, "adapter_model.safetensors", tensors, {"adapter_config.json": config.encode()})


def _save_tensors(directory: Path, name: str, tensors: Tensors, files: Mapping[str, bytes]) -> None:
    directory.mkdir()
    for other, content in files.items():
        (directory / other).write_bytes(content)
    copies = {key: tensor.detach().contiguous().clone() for key, tensor in tensors.items()}
    save_file(copies, directory / name, metadata={"format": "pt"})
    _sync(directory)


def _hidden(directory: Path, step: int) -> Path:
    """A temporary name that is never mistaken for a checkpoint's."""
    return directory / f".{step:08}.{secrets.token_hex(4)}"


def _remove(directory: Path) -> None:
    """Rename it in one step, then delete it: a kill leaves no half checkpoint."""
    aside = directory.rename(_hidden(directory.parent, int(directory.name)))
    shutil.rmtree(aside, ignore_errors=True)


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def _sync(directory: Path) -> None:
    """All of it is on disk."""
    for path in _files(directory):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    for inner in (path for path in directory.rglob("*") if path.is_dir()):
        sync_directory(inner)
    sync_directory(directory)
