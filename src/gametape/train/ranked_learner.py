"""A learner whose ranks are processes of their own: the same calls as a `LocalLearner`, which each of the ranks is."""

import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gametape.core.config import RunConfig
from gametape.core.errors import MissingDependency
from gametape.train.algorithms.base import Algorithm
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.policy import TrainablePolicy
from gametape.train.rank_group import RankGroup
from gametape.train.rank_pipes import PipedRanks
from gametape.train.rank_process import Opened, RankStart
from gametape.train.rollouts import Weights
from gametape.train.run_directory import RunDirectory
from gametape.train.shards import RankPlace
from gametape.train.update_metrics import UpdateMetrics


class RankedLearner:
    """A `Learner`. The policy of this process is what is sampled from; it gets the ranks' weights by `publish`."""

    def __init__(
        self, policy: TrainablePolicy, config: RunConfig, algorithm: Algorithm, directory: RunDirectory
    ) -> None:
        """`algorithm` chooses what is learned here; each rank has one of its own, for the losses."""
        self._policy, self._algorithm = policy, algorithm
        self._buffers = {
            name: torch.empty_like(tensor, dtype=policy.placement.torch_dtype, device="cpu").share_memory_()
            for name, tensor in policy.weights().items()
        }
        self._scratch = tempfile.mkdtemp(prefix="gametape-ranks-")
        self._group = RankGroup(PipedRanks([self._start(rank, config, directory) for rank in range(config.ranks)]))
        try:
            self._opened: Opened = self._group.opened()
        except BaseException:
            self.close()
            raise

    def _start(self, rank: int, config: RunConfig, directory: RunDirectory) -> RankStart:
        store = str(Path(self._scratch) / "store")
        return RankStart(
            RankPlace(rank, config.ranks, config.replicas, store, self._policy.placement, gpu=rank),
            config.model_dump_json(),
            str(directory.start.absolute()),
            str(directory.root.absolute() / f"rank-{rank}.log"),
            {} if rank else self._buffers,
        )

    @property
    def parameters(self) -> int:
        return self._opened.parameters

    @property
    def device(self) -> str:
        return self._opened.device

    @property
    def ended(self) -> "Future[None]":
        return self._group.ended

    def update(self, batch: TrainBatch, step: int, version: int, spent: float = 0.0) -> UpdateMetrics:
        answer: tuple[UpdateMetrics, list[Any], list[Any]] = self._group.call("update", batch, step, version, spent)
        update, self._algorithm.target_metrics, self._algorithm.token_readings = answer
        return update

    def score(self, samples: Sequence[TrainSample]) -> list[Tensor]:
        scored: list[Tensor] = self._group.call("score", list(samples)) if samples else []
        return scored

    def publish(self) -> Weights:
        """What is sampled from in this process has them too afterwards; nothing may be sampled meanwhile."""
        self._group.call("publish")
        self._policy.load_weights(self._buffers)
        return self._buffers

    def save(self, directory: Path) -> "Future[None]":
        return self._group.save(directory.absolute())

    def load(self, directory: Path) -> None:
        self._group.call("load", directory.absolute())

    def close(self) -> None:
        self._group.close()
        shutil.rmtree(self._scratch, ignore_errors=True)


def require_devices(config: RunConfig, device: str) -> None:
    """Each rank has a GPU of its own, where these are what it learns on."""
    there = torch.cuda.device_count() if device == "cuda" else config.ranks
    if config.ranks > there:
        raise MissingDependency(f"ranks = {config.ranks}: each takes a GPU, and there are {there}; --set ranks={there}")
