"""One update: from a batch of lines to new weights. Logits of a whole rollout are never held."""

import ctypes
import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gametape.core.config import RunConfig
from gametape.core.errors import GametapeError
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.forward import forward, head_of
from gametape.train.logprobs import span_logits, token_logprobs
from gametape.train.losses import anchor_loss, normaliser, rl_loss, sft_loss
from gametape.train.optim import clip_grad_norm, make_optimizer, schedule_factor, warmup_factor
from gametape.train.packed_batch import PackedBatch, micro_batches, pack_samples
from gametape.train.policy import TrainablePolicy
from gametape.train.teacher import TargetMetrics, Teacher, ttf_loss_term

_M_MMAP_THRESHOLD = -3
_MMAP_THRESHOLD_BYTES = 4 << 20


def map_large_blocks() -> bool:
    """From now on, in this process; False where the C library has no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES))


_SURE = math.log(0.5)
_ONE_IN = 8
"""So many lines of a portion, and at least two, are compared with the start of the run."""
_SMALL = 2_000_000
"""Parameters up to which a second thread gains a tenth on an idle machine, and on a busy one keeps all the others
waiting."""
_LARGE = 20_000_000
"""Parameters from which on memory is what runs out: layers are then computed again instead of kept."""


class TrainingDiverged(GametapeError):
    """A loss or a gradient is not a number. The weights are those before the update."""

    exit_code = 1


@dataclass(frozen=True)
class UpdateMetrics:
    """What an update did, in numbers. None where there was nothing to measure it on."""

    lines: int
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


class Learner:
    """Holds the optimiser, the teacher, and a copy of the weights that the run began with."""

    def __init__(self, policy: TrainablePolicy, config: RunConfig) -> None:
        self.policy, self._config = policy, config
        self._start = deepcopy(policy.network).requires_grad_(False)
        self.teacher = Teacher(policy.network, config.ttf) if config.uses_ttf else None
        optim = config.optim
        self.optimizer = make_optimizer(policy.network, optim.name, optim.learning_rate, optim.weight_decay)
        if policy.parameters <= _SMALL:
            torch.set_num_threads(1)
        if policy.parameters >= _LARGE:
            policy.network.gradient_checkpointing_enable()
            map_large_blocks()
        self.target_metrics: list[TargetMetrics] = []
        """What the targets of the last update did."""

    def update(self, batch: TrainBatch, step: int, version: int, spent: float = 0.0) -> UpdateMetrics:
        """Learn from a batch, in portions. `step` counts updates from 0, `spent` is the share of the budget that is
        used up, by which the learning rate goes. Without a line nothing changes."""
        self.target_metrics = []
        if not batch.samples:
            return UpdateMetrics(lines=0, tokens=0, forwarded=0)
        sums = _UpdateTotals()
        several = list(micro_batches(batch.samples, self._config.optim.micro_batch_tokens))
        sums.cap = self._config.ttf.clip_norm / max(
            1, sum(any(line.targets for line in portion) for portion in several)
        )
        for portion in several:
            self._backward(portion, batch, version, sums)
        self._step(batch, step, spent, sums)
        return UpdateMetrics(
            lines=len(batch.samples),
            tokens=sums.rows,
            forwarded=sums.rows + sums.only_read,
            loss=sums.loss,
            ttf=sums.ttf if self.target_metrics else None,
            targets=len(self.target_metrics),
            gradient=sums.gradient,
            entropy=sums.entropy / sums.chosen,
            kl_to_start=sums.kl / sums.compared if sums.compared else None,
            mismatch=sums.mismatch / sums.own if sums.own else None,
            mismatch_max=sums.mismatch_max if sums.own else None,
        )

    def score(self, lines: Sequence[TrainSample]) -> list[Tensor]:
        """The log-probabilities of each line's chosen tokens, at temperature 1, under the weights of now."""
        found: list[Tensor] = []
        for portion in micro_batches(lines, self._config.optim.micro_batch_tokens):
            logp_M, _ = self._logprobs(self.policy.network, pack_samples(portion), temperature=1.0)
            found += logp_M.split([len(line.sampled_positions) for line in portion])
        return found

    def _step(self, batch: TrainBatch, step: int, spent: float, sums: "_UpdateTotals") -> None:
        optim = self._config.optim
        norm = clip_grad_norm((parameter.grad for parameter in self.policy.network.parameters()), optim.clip_norm)
        sums.gradient = norm.value
        if not (norm.finite and math.isfinite(sums.loss)):
            self.optimizer.clear()
            named = ", ".join(map(str, batch.request_numbers[:8])) or "demonstrations"
            raise TrainingDiverged(
                f"update {step}: the loss is {sums.loss}, its gradient {norm.value}; the draws are {named}"
            )
        factor = schedule_factor(optim.schedule, spent) * warmup_factor(step, optim.warmup)
        if not any(line.advantage or line.sft_weight for line in batch.samples):
            factor *= self._config.ttf.hint_only_lr_scale
        self.optimizer.step(factor)
        self.optimizer.clear()
        if self.teacher:
            self.teacher.update_from(self.policy.network)

    def _backward(self, lines: list[TrainSample], batch: TrainBatch, version: int, sums: "_UpdateTotals") -> None:
        """Gradients down to the last hidden states are taken stream by stream, so that one can have a cap of its own;
        from there all go back together."""
        network, temperature = self.policy.network, self._config.rl.temperature
        chosen = pack_samples(lines, branches=bool(self.teacher and self.teacher.shares_forward))
        hidden_NE, head_VE = forward(network, chosen.packed), head_of(network)
        ends: tuple[Tensor, Tensor] = (hidden_NE.detach().requires_grad_(), head_VE.detach().requires_grad_())
        logp_M, entropy_M = token_logprobs(ends[0][chosen.rows_M], ends[1], chosen.targets_M, temperature)
        loss = self._loss(lines, chosen, logp_M, batch)
        grads = torch.autograd.grad(loss, ends, allow_unused=True)
        sums.loss += float(loss.detach())
        if chosen.targets and self.teacher:
            grads = _added(grads, self._ttf_grads(chosen, ends, batch, sums))
        hidden_NE.backward(grads[0])
        head_VE.grad = grads[1] if head_VE.grad is None else head_VE.grad + grads[1]
        with torch.no_grad():
            self._measure(lines, chosen, logp_M.detach(), entropy_M.detach(), version, sums)

    def _loss(self, lines: list[TrainSample], chosen: PackedBatch, logp_M: Tensor, batch: TrainBatch) -> Tensor:
        """Reinforced and imitated lines are two streams, each with its own constant normaliser."""
        rl = self._config.rl
        logp_BT, mask_BT = chosen.to_padded(logp_M), chosen.mask_BT
        loss = logp_M.sum() * 0.0
        if any(line.advantage for line in lines):
            loss = loss + rl_loss(
                logp_BT,
                logp_BT.detach(),
                torch.tensor([line.advantage for line in lines]),
                mask_BT,
                rl.loss,
                rl.clip_low,
                rl.clip_high,
                normaliser(rl.loss, batch.rollouts, rl.normalizer_tokens),
                behaviour_logp_BT=chosen.to_padded(chosen.sampled_logp_M) if self._config.asynchronous else None,
                importance_cap=rl.importance_cap,
            )
        weights_B1 = torch.tensor([line.sft_weight for line in lines])[:, None]
        if weights_B1.any():
            loss = loss + sft_loss(
                weights_B1 * logp_BT, mask_BT & (weights_B1 > 0), batch.rollouts * rl.normalizer_tokens
            )
        return loss

    def _ttf_grads(
        self, chosen: PackedBatch, ends: tuple[Tensor, Tensor], batch: TrainBatch, sums: "_UpdateTotals"
    ) -> tuple[Tensor | None, ...]:
        """The third stream, with the anchor that holds what is no target; its gradient is capped by itself."""
        assert self.teacher
        ttf, temperature = self._config.ttf, self._config.rl.temperature
        student = [span_logits(ends[0][span.rows_S], ends[1], temperature) for span in chosen.targets]
        teacher = self.teacher.logits_for(chosen.targets, ends[0].detach(), ends[1].detach(), temperature)
        cap = self._config.rl.importance_cap
        term, seen = ttf_loss_term(chosen.targets, student, teacher, chosen.sampled_logp_M, ttf, cap)
        loss = ttf.weight * term / (batch.rollouts * ttf.normalizer_tokens)
        if ttf.anchor:
            loss = loss + ttf.anchor * self._anchor(chosen, ends, batch, sums)
        grads: tuple[Tensor | None, ...] = torch.autograd.grad(loss, ends, allow_unused=True)
        clip_grad_norm(grads, sums.cap)
        self.target_metrics += seen
        sums.only_read += teacher.tokens_read
        sums.ttf += float(loss.detach())
        sums.loss += float(loss.detach())
        return grads

    def _anchor(
        self, chosen: PackedBatch, ends: tuple[Tensor, Tensor], batch: TrainBatch, sums: "_UpdateTotals"
    ) -> Tensor:
        """Divergence from the start of the run at those chosen tokens of lines with a target that are none of it, and
        that the start was sure of: what was right by luck is not to be held back."""
        lines = list({id(span.sample): span.sample for span in chosen.targets}.values())
        apart = pack_samples(lines)
        start_M, _ = self._logprobs(self._start, apart, self._config.rl.temperature)
        sums.only_read += len(apart.packed.ids_N)
        places = _places_of(lines, chosen)
        target = torch.cat([span.positions_S for span in chosen.targets])
        free = ~torch.isin(places, target) & (start_M > _SURE)
        logp_K, _ = token_logprobs(
            ends[0][chosen.rows_M[places]], ends[1], chosen.targets_M[places], self._config.rl.temperature
        )
        denominator = batch.rollouts * self._config.rl.normalizer_tokens
        return anchor_loss(logp_K[None], start_M[None], free[None], denominator)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def _logprobs(self, network: Any, chosen: PackedBatch, temperature: float) -> tuple[Tensor, Tensor]:
        hidden_ME = forward(network, chosen.packed)[chosen.rows_M]
        return token_logprobs(hidden_ME, head_of(network), chosen.targets_M, temperature)

    def _measure(
        self,
        lines: list[TrainSample],
        chosen: PackedBatch,
        logp_M: Tensor,
        entropy_M: Tensor,
        version: int,
        sums: "_UpdateTotals",
    ) -> None:
        sums.rows += chosen.packed.gradient_rows
        sums.chosen += len(logp_M)
        sums.entropy += float(entropy_M.sum())
        versions = [line.segment.policy_versions[at] for line in lines for at in line.sampled_positions]
        own_M = torch.tensor(versions) == version
        if own_M.any():
            apart = (logp_M - chosen.sampled_logp_M)[own_M].abs()
            sums.own += len(apart)
            sums.mismatch += float(apart.sum())
            sums.mismatch_max = max(sums.mismatch_max, float(apart.max()))
        if not sums.compared:
            some = pack_samples(lines[: max(2, len(lines) // _ONE_IN)])
            before_M, _ = self._logprobs(self._start, some, self._config.rl.temperature)
            sums.compared = len(before_M)
            sums.only_read += len(some.packed.ids_N)
            sums.kl = float((logp_M[: len(before_M)] - before_M).sum())


@dataclass
class _UpdateTotals:
    """Over the portions of one update."""

    cap: float = math.inf
    """The share of the cap on the targets' gradient that a portion with targets has."""
    loss: float = 0.0
    ttf: float = 0.0
    gradient: float = 0.0
    rows: int = 0
    only_read: int = 0
    chosen: int = 0
    entropy: float = 0.0
    own: int = 0
    mismatch: float = 0.0
    mismatch_max: float = 0.0
    compared: int = 0
    kl: float = field(default=0.0)


def _added(one: Sequence[Tensor | None], other: Sequence[Tensor | None]) -> tuple[Tensor | None, ...]:
    pairs = zip(one, other, strict=True)
    return tuple(b if a is None else a if b is None else a + b for a, b in pairs)


def _places_of(lines: Sequence[TrainSample], chosen: PackedBatch) -> Tensor:
    """Which of the chosen tokens belong to these lines, in the lines' order."""
    wanted = {id(line.segment) for line in lines}
    rows = [at for at, line in enumerate(chosen.samples) if id(line.segment) in wanted]
    places_BT = chosen.positions_BT[rows]
    return places_BT[places_BT >= 0]
