"""Where the figures of a run go besides `metrics.jsonl`: TensorBoard, trackio or Weights & Biases, if asked for.

Nothing here is imported unless `track` names it, and nothing is sent anywhere by the others.
"""

import importlib
import math
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from gametape.core.config import RunConfig, TrackerName
from gametape.core.errors import MissingDependency

PROJECT = "gametape"


class Tracker(Protocol):
    """Takes the numbers of each line of the log."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """The numbers by their name, such as `update/loss` or `update/time/idle`; `step` counts updates."""
        ...

    def close(self) -> None: ...


class TensorBoardTracker:
    """Event files in `RUN/tensorboard`: `tensorboard --logdir RUN`."""

    def __init__(self, root: Path, config: RunConfig) -> None:  # noqa: ARG002
        _imported("tensorboard", "tensorboard")
        writer = _imported("torch.utils.tensorboard", "tensorboard").SummaryWriter
        self._writer = writer(log_dir=str(root / "tensorboard"))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class RunTracker:
    """A run of trackio or of wandb, which have the same functions. A resumed run goes on in the same place."""

    def __init__(self, module: str, root: Path, config: RunConfig, **options: Any) -> None:
        self._module = _imported(module, module)
        settings = config.model_dump(mode="json")
        self._module.init(project=PROJECT, name=root.absolute().name, config=settings, resume="allow", **options)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._module.log(dict(values), step=step)

    def close(self) -> None:
        self._module.finish()


def open_trackers(names: Iterable[TrackerName], root: Path, config: RunConfig) -> list[Tracker]:
    """Raises `MissingDependency` for one that is not installed."""
    return [_open_tracker(name, root, config) for name in dict.fromkeys(names)]


def _open_tracker(name: TrackerName, root: Path, config: RunConfig) -> Tracker:
    if name == "tensorboard":
        return TensorBoardTracker(root, config)
    if name == "wandb":
        identity = sha256(str(root.absolute()).encode()).hexdigest()[:16]
        return RunTracker("wandb", root, config, id=identity, dir=str(root))
    return RunTracker("trackio", root, config)


def flat_numbers(kind: str, values: Mapping[str, Any]) -> dict[str, float]:
    """The finite numbers of a line of the log by their path; texts, lists and what is not known are left out."""
    return dict(_numbers(kind, values))


def _numbers(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for key, value in values.items():
        name = f"{prefix}/{key}"
        if isinstance(value, Mapping):
            yield from _numbers(name, value)
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            yield name, float(value)


def _imported(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependency(f"track: {package} is not installed: pip install {package} ({error})") from error
