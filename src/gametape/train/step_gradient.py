"""The gradient of one step of the optimiser: forward, losses and backward over the parts that a rank has of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gametape.core.config import RunConfig
from gametape.train.algorithms.base import Algorithm, ExtraLoss, MicroBatch
from gametape.train.batch import PackedBatch, TrainBatch, TrainSample, micro_batches, pack_samples
from gametape.train.losses import has_rollout_ratio
from gametape.train.optim import EndNorm, cap_norm
from gametape.train.policy_module import ForwardOutputs, PolicyModule
from gametape.train.ranks import Part, Ranks
from gametape.train.reference_policy import ReferencePolicy
from gametape.train.references import SampleLogprobs, StepReferences, split_rollouts
from gametape.train.router_balance import ExpertChoices, balance_loss, balance_weight
from gametape.train.token_logprobs import token_logprobs
from gametape.train.update_metrics import UpdateTotals

_COMPARED_SHARE = 8
"""One in so many samples of the first micro-batch, and at least one, is compared with the start of the run,"""
_COMPARED_UPDATES = 4
"""in one of so many updates: a small network's update is bound by the kernels that the host has to start, and those of
one more forward are a sixth of them. The distance changes slowly."""
_Grads = tuple[Tensor | None, ...]


@dataclass(frozen=True)
class Scorer:
    """Log-probabilities of chosen tokens by the weights of a module as they are now."""

    module: PolicyModule
    ranks: Ranks
    micro_batch_tokens: int

    def __call__(self, samples: Sequence[TrainSample], temperature: float, totals: UpdateTotals) -> SampleLogprobs:
        if not samples:
            return {}
        scored: dict[int, Tensor] = {}
        for part in self.ranks.deal(list(micro_batches(samples, self.micro_batch_tokens))):
            packed = pack_samples(part.samples).to(self.module.device)
            logp_M = self.module.chosen_logprobs(packed, temperature)
            if part.counts:
                totals.only_read += len(packed.packed.ids_N)
                pieces = logp_M.split([len(sample.sampled_positions) for sample in part.samples])
                scored |= {id(sample): logp_T for sample, logp_T in zip(part.samples, pieces, strict=True)}
        lengths = {id(sample): len(sample.sampled_positions) for sample in samples}
        return self.ranks.share(scored, lengths, like=logp_M)


class StepGradient:
    """Adds the gradients of minibatches to the parameters. What is learned, and by which loss, is the algorithm's."""

    def __init__(
        self,
        module: PolicyModule,
        start: ReferencePolicy | None,
        algorithm: Algorithm,
        config: RunConfig,
        ranks: Ranks,
    ) -> None:
        self._module, self._start, self._algorithm, self._config, self._ranks = module, start, algorithm, config, ranks
        self._score = Scorer(module, ranks, config.optim.micro_batch_tokens)
        self._balance = balance_weight(module.network.config) if module.experts else 0.0

    def add(self, minibatch: TrainBatch, proximal: SampleLogprobs, totals: UpdateTotals) -> None:
        """In micro-batches, whose number and order, and the number of ranks, change nothing but rounding."""
        parts = list(micro_batches(self._ordered(minibatch.samples), self._config.optim.micro_batch_tokens))
        dealt = self._ranks.deal(parts, self._algorithm.has_extra_loss)
        step = _Step(minibatch, self._references(parts, minibatch, proximal, totals), len(parts))
        step.extra_factor = self._extra_factor(parts, dealt, step, totals)
        step.choices = self._expert_choices(dealt, step, totals)
        for part in dealt:
            self._backward(part, step, totals)

    def _ordered(self, samples: Sequence[TrainSample]) -> Sequence[TrainSample]:
        """Prompts with an extra loss first: all in one part, they need no forward to know its norm. With several ranks
        they are better spread."""
        if self._ranks.world > 1:
            return samples
        extra = {sample.prompt_number for sample in samples if self._algorithm.has_extra_loss([sample])}
        return sorted(samples, key=lambda sample: sample.prompt_number not in extra)

    def _references(
        self,
        parts: Sequence[Sequence[TrainSample]],
        minibatch: TrainBatch,
        proximal: SampleLogprobs,
        totals: UpdateTotals,
    ) -> StepReferences:
        rl = self._config.rl
        current: SampleLogprobs = {}
        if has_rollout_ratio(rl.loss) and (split := split_rollouts(parts)):
            scored = [sample for sample in split if sample.has_advantage]
            # Before the first step the policy is the proximal one.
            fresh = totals.steps or not proximal
            current = self._score(scored, rl.temperature, totals) if fresh else proximal
        return StepReferences(minibatch.samples, rl.importance_cap, proximal, current)

    def _extra_factor(
        self, parts: Sequence[list[TrainSample]], dealt: Sequence[Part], step: "_Step", totals: UpdateTotals
    ) -> float | None:
        """What to scale the gradient of the extra loss by so that it keeps its cap over all parts. None where one part
        alone has such a loss, and knows the norm itself."""
        if sum(self._algorithm.has_extra_loss(samples) for samples in parts) < 2:
            return None
        norm, most = EndNorm(), math.inf
        for part in dealt:
            if not self._algorithm.has_extra_loss(part.samples):
                continue
            with torch.no_grad():
                micro, _ = self._micro_batch(part.samples, step)
            extra = self._algorithm.extra_loss(micro)
            grads = _end_gradients(extra.loss if extra else micro.logp_M.sum() * 0.0, micro)
            norm.add(*(grads if part.counts else _zeros(grads)))
            if part.counts:
                most = extra.clip_norm if extra else most
                totals.only_read += len(micro.packed.packed.ids_N) + (extra.tokens_read if extra else 0)
        return norm.factor(min(self._ranks.gather(most)), self._ranks)

    def _expert_choices(self, dealt: Sequence[Part], step: "_Step", totals: UpdateTotals) -> ExpertChoices | None:
        """Of the whole step. None where one part is all of it, and knows its own, or where nothing is balanced."""
        if not self._balance or step.parts < 2:
            return None
        own: list[ExpertChoices] = []
        for part in dealt:
            packed = pack_samples(part.samples).to(self._module.device)
            with torch.no_grad():
                routers = [logits_NE[packed.rows_M] for logits_NE in self._module(packed.packed).router_logits]
            if part.counts:
                own.append(ExpertChoices.of_routers(routers, self._module.experts_per_token))
                totals.only_read += len(packed.packed.ids_N)
        gathered = [choices for each in self._ranks.gather(own) for choices in each]
        return sum(gathered[1:], gathered[0])

    def _micro_batch(self, samples: Sequence[TrainSample], step: "_Step") -> tuple[MicroBatch, "_Forward"]:
        """The losses' view of one forward, whose ends are leaves of their own."""
        packed = pack_samples(samples, branches=self._algorithm.packs_hints).to(self._module.device)
        outputs: ForwardOutputs = self._module(packed.packed)
        rows_ME = outputs.hidden_NE[packed.rows_M]
        with torch.enable_grad():
            hidden_ME = rows_ME.detach().requires_grad_()
            head_VE = outputs.head_VE.detach().requires_grad_(self._module.trains_head)
            logp_M, entropy_M = token_logprobs(hidden_ME, head_VE, packed.targets_M, self._config.rl.temperature)
        references = step.references.of_tokens(packed, logp_M)
        micro = MicroBatch(
            step.minibatch,
            packed,
            logp_M,
            hidden_ME,
            head_VE,
            outputs.hidden_NE.detach(),
            references,
            step.references.rollout_sums(packed, logp_M, references),
            start_logprobs=self._start_logprobs,
        )
        routers = tuple(logits_NE[packed.rows_M] for logits_NE in outputs.router_logits)
        return micro, _Forward(rows_ME, outputs.head_VE, routers, entropy_M.detach())

    def _backward(self, part: Part, step: "_Step", totals: UpdateTotals) -> None:
        """Gradients down to the last hidden states are taken loss by loss, so that one can have a cap of its own; from
        there all go back together."""
        micro, outputs = self._micro_batch(part.samples, step)
        loss = self._algorithm.loss(micro)
        grads = _end_gradients(loss, micro)
        extra = self._algorithm.extra_loss(micro)
        if extra:
            grads = _added(grads, _capped_gradients(extra, micro, step.extra_factor))
        ends = [outputs.rows_ME, outputs.head_VE]
        if self._balance:
            balance, router_grads = self._balance_gradients(outputs.router_logits, step)
            ends, grads = [*ends, *outputs.router_logits], (*grads, *router_grads)
            totals.loss = totals.loss + (balance if part.counts else 0.0)
        _go_back(ends, grads if part.counts else _zeros(grads))
        if part.counts:
            totals.loss = totals.loss + loss.detach()
            self._count(micro, extra, outputs, totals)
        if totals.measured:
            self._measure(micro, step.references, outputs, part.counts, totals)

    def _balance_gradients(self, routers: Sequence[Tensor], step: "_Step") -> tuple[Tensor, _Grads]:
        choices = step.choices or ExpertChoices.of_routers(routers, self._module.experts_per_token)
        leaves = [logits_NE.detach().requires_grad_() for logits_NE in routers]
        loss = self._balance * balance_loss(leaves, choices)
        return loss.detach(), torch.autograd.grad(loss, leaves)

    def _count(self, micro: MicroBatch, extra: ExtraLoss | None, outputs: "_Forward", totals: UpdateTotals) -> None:
        if extra:
            totals.add_extra(extra)
        totals.rows += micro.packed.packed.gradient_rows
        totals.only_read += micro.packed.packed.frozen_rows
        totals.add_importance(self._algorithm.importance(micro))
        if outputs.router_logits:
            totals.add_choices(ExpertChoices.of_routers(outputs.router_logits, self._module.experts_per_token))

    def _start_logprobs(self, packed: PackedBatch) -> Tensor:
        assert self._start, "an algorithm that needs the start says so in `needs_start`"
        return self._start.chosen_logprobs(packed, self._config.rl.temperature)

    def _measure(
        self, micro: MicroBatch, references: StepReferences, outputs: "_Forward", counts: bool, totals: UpdateTotals
    ) -> None:
        samples, logp_M = micro.packed.samples, micro.logp_M.detach()
        if counts:
            before_M = references.proximal_of(samples, logp_M)
            totals.add_entropy(outputs.entropy_M)
            totals.add_mismatch(micro.packed, before_M)
            totals.add_readings(micro.packed, before_M, outputs.entropy_M)
        if self._start and not totals.has_compared and totals.version % _COMPARED_UPDATES == 0:
            totals.has_compared = True
            some = pack_samples(samples[: max(1, len(samples) // _COMPARED_SHARE)]).to(logp_M.device)
            start_M = self._start_logprobs(some)
            if counts:
                totals.only_read += len(some.packed.ids_N)
                totals.compared = len(start_M)
                totals.kl = (logp_M[: len(start_M)] - start_M).sum()


@dataclass
class _Step:
    """What all parts of a step have in common."""

    minibatch: TrainBatch
    references: StepReferences
    parts: int
    """Of all ranks."""
    extra_factor: float | None = None
    choices: ExpertChoices | None = None


@dataclass(frozen=True)
class _Forward:
    """Where the gradients of a micro-batch go back."""

    rows_ME: Tensor
    head_VE: Tensor
    router_logits: tuple[Tensor, ...]
    """Of the same rows."""
    entropy_M: Tensor


def _end_gradients(loss: Tensor, micro: MicroBatch) -> _Grads:
    """At the last hidden states and at the head; None where one is not in the loss, or is not learned."""
    ends = [end for end in (micro.hidden_ME, micro.head_VE) if end.requires_grad]
    grads: _Grads = torch.autograd.grad(loss, ends, allow_unused=True)
    return (*grads, None)[:2]


def _zeros(grads: _Grads) -> _Grads:
    return tuple(None if grad is None else torch.zeros_like(grad) for grad in grads)


def _go_back(ends: Sequence[Tensor], grads: Sequence[Tensor | None]) -> None:
    pairs = [(end, grad) for end, grad in zip(ends, grads, strict=True) if grad is not None and end.requires_grad]
    torch.autograd.backward([end for end, _ in pairs], [grad for _, grad in pairs])


def _capped_gradients(extra: ExtraLoss, micro: MicroBatch, factor: float | None) -> _Grads:
    """Without a factor that is known beforehand the cap is this part's own."""
    grads = _end_gradients(extra.loss, micro)
    if factor is None:
        cap_norm(grads, extra.clip_norm)
        return grads
    return tuple(None if grad is None else grad * factor for grad in grads)


def _added(grads: Sequence[Tensor | None], others: Sequence[Tensor | None]) -> _Grads:
    pairs = zip(grads, others, strict=True)
    return tuple(b if a is None else a if b is None else a + b for a, b in pairs)
