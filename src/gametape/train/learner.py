"""One update: from a batch of samples to new weights, in one step of the optimiser or in several. The logits of a whole
rollout are never held at once."""

import ctypes
import math
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor

from gametape.core.config import RunConfig
from gametape.core.errors import GametapeError
from gametape.core.protocols import Learner
from gametape.core.seeds import seed_for
from gametape.engines.model_names import MODEL, SHARDS
from gametape.train import checkpoints
from gametape.train.algorithms import make_algorithm
from gametape.train.algorithms.base import Algorithm
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.checkpoint_shards import (
    OPTIMIZER,
    TEACHER,
    WEIGHTS,
    begin_writing,
    finish_writing,
    read_into,
    saved_shapes,
)
from gametape.train.memory_plan import RECOMPUTE_FROM
from gametape.train.optim import clip_grad_norm, make_optimizer, schedule_factor, warmup_factor
from gametape.train.policy import TrainablePolicy
from gametape.train.policy_module import PolicyModule
from gametape.train.ranks import Ranks
from gametape.train.reference_policy import make_reference
from gametape.train.references import SampleLogprobs
from gametape.train.rollouts import Weights
from gametape.train.shards import shard_module, whole
from gametape.train.step_gradient import Scorer, StepGradient
from gametape.train.update_metrics import UpdateMetrics, UpdateTotals

_M_MMAP_THRESHOLD = -3
_MMAP_THRESHOLD_BYTES = 4 << 20
_SMALL = 2_000_000
"""Parameters up to which a second thread gains a tenth on an idle machine, and on a busy one keeps all the others
waiting."""


def map_large_blocks() -> bool:
    """Have the C library return large blocks of memory to the system from now on; False where it has no such
    setting."""
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES))
    except AttributeError:
        return False


class TrainingDiverged(GametapeError):
    """A loss or a gradient is not a number. The weights are those before the step that it was for."""

    exit_code = 1


class LocalLearner:
    """A `Learner` in this process. It holds the optimiser, and a copy of the weights that the run began with; what is
    learned, and by which loss, is the algorithm's."""

    def __init__(
        self,
        policy: TrainablePolicy,
        config: RunConfig,
        algorithm: Algorithm | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        """Without `algorithm` it is the one that the configuration's `arm` names."""
        self.policy, self.algorithm, self._config = policy, algorithm or make_algorithm(config), config
        self._ranks = ranks or Ranks()
        module = self._module = PolicyModule(policy.network, policy.adapters)
        needs_start = config.memory.measure_start or self.algorithm.needs_start
        start = make_reference(module, moves=False) if needs_start else None
        self.algorithm.setup(module)
        if policy.parameters >= RECOMPUTE_FROM:
            map_large_blocks()
        if config.memory.recompute == "on" or (
            config.memory.recompute == "auto" and policy.parameters >= RECOMPUTE_FROM
        ):
            module.checkpoint_activations()
        modules = (module, *(start.modules() if start else ()), *self.algorithm.modules())
        if self._ranks.mesh:
            for each in modules[: len(modules) - len(self.algorithm.modules())]:
                _narrow_frozen(each, self._ranks.compute_dtype)
            for each in modules:
                _place(each, self._ranks, config)
        if _compiles(config, self._ranks):
            for each in modules:
                each.compile_layers(config.optim.micro_batch_tokens)
        optim = config.optim
        self.optimizer = make_optimizer(policy.network, optim.name, optim.learning_rate, optim.weight_decay)
        if policy.parameters <= _SMALL:
            torch.set_num_threads(1)
        self._score = Scorer(module, self._ranks, optim.micro_batch_tokens)
        self._gradient = StepGradient(module, start, self.algorithm, config, self._ranks)
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self.ended: Future[None] = Future()

    @property
    def parameters(self) -> int:
        return self.policy.parameters

    @property
    def device(self) -> str:
        return str(self.policy.network.device)

    def update(self, batch: TrainBatch, step: int, version: int, spent: float = 0.0) -> UpdateMetrics:
        """Learn from a batch, in minibatches. The learning rate goes by `spent`. Without a sample nothing changes."""
        self.algorithm.target_metrics, self.algorithm.token_readings = [], []
        totals = UpdateTotals(version)
        if not batch.samples:
            return totals.metrics(lines=0)
        rl = self._config.rl
        epochs = [
            batch.minibatches(rl.minibatches, seed_for(self._config.seed, "minibatches", step, epoch))
            for epoch in range(rl.epochs)
        ]
        proximal: SampleLogprobs = {}
        if sum(map(len, epochs)) > 1:
            proximal = self._score(batch.in_order().samples, rl.temperature, totals)
        for epoch, minibatches in enumerate(epochs):
            for minibatch in minibatches:
                totals.measured = epoch == 0
                self._gradient.add(minibatch, proximal, totals)
                self._step(batch, step, spent, totals)
        own = [metrics for read in totals.target_metrics for metrics in read()]
        targets = [metrics for rank in self._ranks.gather(own) for metrics in rank]
        read = self._ranks.gather(totals.take_readings())
        totals.read()
        totals.target_metrics = []
        totals = UpdateTotals.of_ranks(self._ranks.gather(totals))
        self.algorithm.target_metrics = targets
        self.algorithm.token_readings = [reading for rank in read for reading in rank]
        return totals.metrics(lines=len(batch.samples), targets=len(targets))

    def score(self, samples: Sequence[TrainSample]) -> list[Tensor]:
        """At temperature 1."""
        scored = self._score(samples, 1.0, UpdateTotals(0))
        self._module.release()
        return [scored[id(sample)].cpu() for sample in samples]

    def publish(self) -> Weights:
        """A sampler with tensors of its own has them too afterwards; nothing may be sampled meanwhile."""
        weights = self.policy.weights()
        self.policy.copy_to_sampler(weights)
        return weights

    def save(self, directory: Path) -> "Future[None]":
        """Returns when all is copied; the result is there when all is written. Every rank writes its shards, and the
        first one a model that other programs load."""
        first, adapters = self._ranks.rank == 0, self.policy.adapters
        shards = begin_writing(directory / SHARDS, self._tensors(), self._ranks)
        weights = {name: tensor.to("cpu", copy=True) for name, tensor in self.policy.each_weight() if first}
        adapter = (
            {name: whole(tensor).to("cpu", copy=True) for name, tensor in adapters.tensors().items()}
            if adapters
            else {}
        )

        def write() -> None:
            shards.result()
            if first:
                checkpoints.save_model(directory / MODEL, weights, self.policy.files)
            if first and adapters:
                checkpoints.save_adapter(directory / "adapter", adapter, adapters.peft_config())

        return self._thread.submit(finish_writing, write)

    def load(self, directory: Path) -> None:
        """Also what another number of ranks has written."""
        shapes = saved_shapes(directory)
        states = {name.removeprefix(OPTIMIZER): shape for name, shape in shapes.items() if name.startswith(OPTIMIZER)}
        self.optimizer.room_for(states)
        tensors = self._tensors()
        read_into(directory, tensors, self._ranks)
        own = {name.removeprefix(TEACHER): one for name, one in tensors.items() if name.startswith(TEACHER)}
        self.algorithm.load_tensors(own)

    def close(self) -> None:
        self._thread.shutdown()

    def _tensors(self) -> dict[str, Tensor]:
        """All that changes by learning, sharded as it is."""
        learned = {name: one.detach() for name, one in self.policy.network.named_parameters() if one.requires_grad}
        parts = {WEIGHTS: learned, OPTIMIZER: self.optimizer.tensors(), TEACHER: self.algorithm.tensors()}
        return {prefix + name: tensor for prefix, part in parts.items() for name, tensor in part.items()}

    def _step(self, batch: TrainBatch, step: int, spent: float, totals: UpdateTotals) -> None:
        optim, network = self._config.optim, self.policy.network
        norm = clip_grad_norm((parameter.grad for parameter in network.parameters()), optim.clip_norm)
        totals.read()
        totals.gradient += norm.value
        totals.steps += 1
        if not norm.finite or self._ranks.any(not math.isfinite(totals.loss)):
            self.optimizer.clear()
            named = ", ".join(map(str, batch.request_numbers[:8])) or "demonstrations"
            raise TrainingDiverged(
                f"update {step}: the loss is {totals.loss}, its gradient {norm.value}; the draws are {named}"
            )
        self._module.release()
        factor = schedule_factor(optim.schedule, spent) * warmup_factor(step, optim.warmup)
        self.optimizer.step(factor * self.algorithm.lr_factor(batch))
        self.optimizer.clear()
        self.algorithm.after_update(self._module)


def _narrow_frozen(module: PolicyModule, dtype: torch.dtype | None) -> None:
    """Weights that are not learned need no more precision than layers compute in."""
    for parameter in module.parameters():
        if dtype and not parameter.requires_grad:
            parameter.data = parameter.data.to(dtype)


def _place(module: PolicyModule, ranks: Ranks, config: RunConfig) -> None:
    """Whole, where one process has it all; else sharded."""
    assert ranks.mesh
    dtype, offload = ranks.compute_dtype or torch.float32, config.memory.offload
    if ranks.world > 1 or offload or not module.place_whole(ranks.mesh.device_type, dtype):
        shard_module(module, ranks.mesh, ranks.compute_dtype, offload)


def _compiles(config: RunConfig, ranks: Ranks) -> bool:
    on_gpu = ranks.mesh is not None and ranks.mesh.device_type == "cuda"
    wanted = config.optim.compile_layers
    return wanted == "on" or (wanted == "auto" and on_gpu and ranks.world == 1)


PolicyLearner: TypeAlias = Learner[TrainBatch, TrainSample, UpdateMetrics, Tensor, Weights, Path]
"""What the loop asks for; `LocalLearner` is one."""
