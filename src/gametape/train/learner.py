"""One update: from a batch of samples to new weights. The logits of a whole rollout are never held at once."""

import ctypes
import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn

from gametape.core.config import RunConfig
from gametape.core.errors import GametapeError
from gametape.core.protocols import Learner
from gametape.train.algorithms import make_algorithm
from gametape.train.algorithms.base import Algorithm, MicroBatch
from gametape.train.batch import PackedBatch, TrainBatch, TrainSample, micro_batches, pack_samples
from gametape.train.checkpoints import Checkpoint
from gametape.train.forward import forward, head_of, token_logprobs
from gametape.train.optim import clip_grad_norm, make_optimizer, schedule_factor, warmup_factor
from gametape.train.policy import TrainablePolicy
from gametape.train.rollouts import Weights

_M_MMAP_THRESHOLD = -3
_MMAP_THRESHOLD_BYTES = 4 << 20
_COMPARED_SHARE = 8
"""One in so many samples of a micro-batch, and at least two, are compared with the start of the run."""
_SMALL = 2_000_000
"""Parameters up to which a second thread gains a tenth on an idle machine, and on a busy one keeps all the others
waiting."""
_LARGE = 20_000_000
"""Parameters from which on memory is what runs out: layers are then computed again instead of kept."""


def map_large_blocks() -> bool:
    """Have the C library return large blocks of memory to the system from now on; False where it has no such
    setting."""
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES))
    except AttributeError:
        return False


class TrainingDiverged(GametapeError):
    """A loss or a gradient is not a number. The weights are those before the update."""

    exit_code = 1


@dataclass(frozen=True)
class UpdateMetrics:
    """What an update did, in numbers. None where there was nothing to measure it on."""

    lines: int
    """Samples."""
    tokens: int
    """Back-propagated."""
    forwarded: int
    loss: float | None = None
    ttf: float | None = None
    """The part of the loss that comes from targets, with its factor."""
    targets: int = 0
    gradient: float | None = None
    entropy: float | None = None
    kl_to_start: float | None = None
    mismatch: float | None = None
    """Mean difference to the sampler's log-probabilities, over tokens that these very weights sampled."""
    mismatch_max: float | None = None


class LocalLearner:
    """A `Learner` in this process. It holds the optimiser, and a copy of the weights that the run began with; what is
    learned, and by which loss, is the algorithm's."""

    def __init__(self, policy: TrainablePolicy, config: RunConfig, algorithm: Algorithm | None = None) -> None:
        """Without `algorithm` it is the one that the configuration's `arm` names."""
        self.policy, self.algorithm, self._config = policy, algorithm or make_algorithm(config), config
        self._start = deepcopy(policy.network).requires_grad_(False)
        self.algorithm.setup(policy.network)
        optim = config.optim
        self.optimizer = make_optimizer(policy.network, optim.name, optim.learning_rate, optim.weight_decay)
        if policy.parameters <= _SMALL:
            torch.set_num_threads(1)
        if policy.parameters >= _LARGE:
            policy.network.gradient_checkpointing_enable()
            map_large_blocks()

    @property
    def parameters(self) -> int:
        return self.policy.parameters

    def update(self, batch: TrainBatch, step: int, version: int, spent: float = 0.0) -> UpdateMetrics:
        """Learn from a batch, in micro-batches. The learning rate goes by `spent`. Without a sample nothing changes."""
        self.algorithm.target_metrics = []
        if not batch.samples:
            return UpdateMetrics(lines=0, tokens=0, forwarded=0)
        totals = _UpdateTotals()
        parts = list(micro_batches(batch.samples, self._config.optim.micro_batch_tokens))
        for samples in parts:
            self._backward(samples, parts, batch, version, totals)
        self._step(batch, step, spent, totals)
        targets = len(self.algorithm.target_metrics)
        return UpdateMetrics(
            lines=len(batch.samples),
            tokens=totals.rows,
            forwarded=totals.rows + totals.only_read,
            loss=totals.loss,
            ttf=totals.extra if targets else None,
            targets=targets,
            gradient=totals.gradient,
            entropy=totals.entropy / totals.chosen,
            kl_to_start=totals.kl / totals.compared if totals.compared else None,
            mismatch=totals.mismatch / totals.own if totals.own else None,
            mismatch_max=totals.mismatch_max if totals.own else None,
        )

    def score(self, samples: Sequence[TrainSample]) -> list[Tensor]:
        """At temperature 1."""
        scores: list[Tensor] = []
        for part in micro_batches(samples, self._config.optim.micro_batch_tokens):
            logp_M = self._logprobs(self.policy.network, pack_samples(part), temperature=1.0)
            scores += logp_M.split([len(sample.sampled_positions) for sample in part])
        return scores

    def publish(self) -> Weights:
        return self.policy.weights()

    def save(self) -> Checkpoint:
        """Without the state of the run, which is the loop's."""
        return Checkpoint(
            self.policy.weights(), {}, self.optimizer.tensors(), self.algorithm.tensors(), self.policy.files
        )

    def load(self, state: Checkpoint) -> None:
        self.policy.load_weights(state.weights)
        self.optimizer.load(state.optimizer)
        self.algorithm.load_tensors(state.teacher)

    def _step(self, batch: TrainBatch, step: int, spent: float, totals: "_UpdateTotals") -> None:
        optim, network = self._config.optim, self.policy.network
        norm = clip_grad_norm((parameter.grad for parameter in network.parameters()), optim.clip_norm)
        totals.gradient = norm.value
        if not (norm.finite and math.isfinite(totals.loss)):
            self.optimizer.clear()
            named = ", ".join(map(str, batch.request_numbers[:8])) or "demonstrations"
            raise TrainingDiverged(
                f"update {step}: the loss is {totals.loss}, its gradient {norm.value}; the draws are {named}"
            )
        factor = schedule_factor(optim.schedule, spent) * warmup_factor(step, optim.warmup)
        self.optimizer.step(factor * self.algorithm.lr_factor(batch))
        self.optimizer.clear()
        self.algorithm.after_update(network)

    def _backward(
        self,
        samples: list[TrainSample],
        parts: Sequence[Sequence[TrainSample]],
        batch: TrainBatch,
        version: int,
        totals: "_UpdateTotals",
    ) -> None:
        """Gradients down to the last hidden states are taken loss by loss, so that one can have a cap of its own; from
        there all go back together."""
        network, temperature = self.policy.network, self._config.rl.temperature
        packed = pack_samples(samples, branches=self.algorithm.packs_hints)
        hidden_NE, head_VE = forward(network, packed.packed), head_of(network)
        ends: tuple[Tensor, Tensor] = (hidden_NE.detach().requires_grad_(), head_VE.detach().requires_grad_())
        logp_M, entropy_M = token_logprobs(ends[0][packed.rows_M], ends[1], packed.targets_M, temperature)
        micro = MicroBatch(batch, parts, packed, logp_M, *ends, start_logprobs=self._start_logprobs)
        loss = self.algorithm.loss(micro)
        grads = torch.autograd.grad(loss, ends, allow_unused=True)
        totals.loss += float(loss.detach())
        if extra := self.algorithm.extra_loss(micro):
            extra_grads: tuple[Tensor | None, ...] = torch.autograd.grad(extra.loss, ends, allow_unused=True)
            clip_grad_norm(extra_grads, extra.clip_norm)
            totals.only_read += extra.tokens_read
            totals.extra += float(extra.loss.detach())
            totals.loss += float(extra.loss.detach())
            grads = _added(grads, extra_grads)
        hidden_NE.backward(grads[0])
        head_VE.grad = grads[1] if head_VE.grad is None else head_VE.grad + grads[1]
        self._measure(packed, logp_M.detach(), entropy_M.detach(), version, totals)

    def _start_logprobs(self, packed: PackedBatch) -> Tensor:
        return self._logprobs(self._start, packed, self._config.rl.temperature)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def _logprobs(self, network: nn.Module, packed: PackedBatch, temperature: float) -> Tensor:
        hidden_ME = forward(network, packed.packed)[packed.rows_M]
        return token_logprobs(hidden_ME, head_of(network), packed.targets_M, temperature)[0]

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def _measure(
        self, packed: PackedBatch, logp_M: Tensor, entropy_M: Tensor, version: int, totals: "_UpdateTotals"
    ) -> None:
        samples = packed.samples
        totals.rows += packed.packed.gradient_rows
        totals.chosen += len(logp_M)
        totals.entropy += float(entropy_M.sum())
        versions = [sample.segment.policy_versions[at] for sample in samples for at in sample.sampled_positions]
        own_M = torch.tensor(versions) == version
        if own_M.any():
            gaps = (logp_M - packed.sampled_logp_M)[own_M].abs()
            totals.own += len(gaps)
            totals.mismatch += float(gaps.sum())
            totals.mismatch_max = max(totals.mismatch_max, float(gaps.max()))
        if not totals.compared:
            some = pack_samples(samples[: max(2, len(samples) // _COMPARED_SHARE)])
            before_M = self._start_logprobs(some)
            totals.compared = len(before_M)
            totals.only_read += len(some.packed.ids_N)
            totals.kl = float((logp_M[: len(before_M)] - before_M).sum())


PolicyLearner: TypeAlias = Learner[TrainBatch, TrainSample, UpdateMetrics, Tensor, Weights, Checkpoint]
"""What the loop asks for; `LocalLearner` is one."""


@dataclass
class _UpdateTotals:
    """Sums over the micro-batches of one update."""

    loss: float = 0.0
    extra: float = 0.0
    gradient: float = 0.0
    rows: int = 0
    only_read: int = 0
    chosen: int = 0
    entropy: float = 0.0
    own: int = 0
    mismatch: float = 0.0
    mismatch_max: float = 0.0
    compared: int = 0
    kl: float = 0.0


def _added(grads: Sequence[Tensor | None], others: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
    pairs = zip(grads, others, strict=True)
    return tuple(b if a is None else a if b is None else a + b for a, b in pairs)
