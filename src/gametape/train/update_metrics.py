"""What an update did, in numbers: sums over its forwards, and the line of the log that they become."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, TypeAlias

import torch
from torch import Tensor

from gametape.train.algorithms.base import ExtraLoss
from gametape.train.batch import PackedBatch, TrainSample
from gametape.train.losses import TokenImportance
from gametape.train.rollouts import TargetMetrics, TokenReading
from gametape.train.router_balance import ExpertChoices

Sum: TypeAlias = Any
"""A number, or a tensor that has it on the device."""

_QUANTILES = {"low": 0.01, "median": 0.5, "high": 0.99}


@dataclass(frozen=True)
class UpdateMetrics:
    """What an update did, in numbers. None where there was nothing to measure it on."""

    lines: int
    """Samples."""
    tokens: int
    """Back-propagated."""
    forwarded: int
    steps: int = 0
    """Of the optimiser."""
    loss: float | None = None
    """The mean over steps, as is `gradient`."""
    ttf: float | None = None
    """The part of the loss that comes from targets, with its factor."""
    targets: int = 0
    gradient: float | None = None
    entropy: float | None = None
    kl_to_start: float | None = None
    mismatch: float | None = None
    """Mean difference to the sampler's log-probabilities, over tokens that these very weights sampled."""
    mismatch_max: float | None = None
    importance: dict[str, float] | None = None
    """Weights from the sampler to the policy at the start of the update, over tokens with an advantage: quantiles,
    extremes, and the share that was cut at the cap."""
    ratio: dict[str, float] | None = None
    """From there to the policy before each step, likewise; `clipped` is the share at which the clip bound acts."""
    routers: dict[str, float] | None = None
    """How evenly the experts of a mixture were used."""


@dataclass
class UpdateTotals:
    """Sums over the forwards of one update. Those that are tensors are where they were computed until `read`, so that
    nobody waits for a GPU while there is more for it to do."""

    version: int
    """Of the weights at its start."""
    measured: bool = True
    """Whether the forwards are the first over their samples: what describes the samples is measured once."""
    steps: int = 0
    loss: Sum = 0.0
    extra: Sum = 0.0
    gradient: float = 0.0
    rows: int = 0
    only_read: int = 0
    chosen: int = 0
    entropy: Sum = 0.0
    own: Sum = 0
    mismatch: Sum = 0.0
    mismatch_max: Sum = 0.0
    compared: int = 0
    kl: Sum = 0.0
    has_compared: bool = False
    """Whether some samples have been compared with the start of the run."""
    importance: list[TokenImportance] = field(default_factory=list)
    target_metrics: list[Callable[[], Sequence[TargetMetrics]]] = field(default_factory=list)
    """Of the targets of the first forwards over their samples."""
    choices: ExpertChoices | None = None
    readings: list[tuple[TrainSample, Tensor, Tensor]] = field(default_factory=list)
    """Of samples with a target: log-probabilities by the weights at the start of the update, and entropies."""

    @classmethod
    def of_ranks(cls, ranks: Sequence["UpdateTotals"]) -> "UpdateTotals":
        """Each went through its own parts, and all took the same steps."""
        summed = ("loss", "extra", "rows", "only_read", "chosen", "entropy", "own", "mismatch", "compared", "kl")
        totals = replace(ranks[0], mismatch_max=max(rank.mismatch_max for rank in ranks))
        for name in summed:
            setattr(totals, name, sum(getattr(rank, name) for rank in ranks))
        totals.importance = [importance for rank in ranks for importance in rank.importance]
        totals.choices, totals.readings = None, []
        for rank in ranks:
            totals.add_choices(rank.choices)
        return totals

    def read(self) -> None:
        """Bring all sums here."""
        tensors = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        if tensors:
            numbers = torch.stack([tensor.double() for tensor in tensors.values()]).tolist()
            for name, number in zip(tensors, numbers, strict=True):
                setattr(self, name, number)

    def add_choices(self, choices: ExpertChoices | None) -> None:
        if choices is not None:
            self.choices = choices if self.choices is None else self.choices + choices

    def add_extra(self, extra: ExtraLoss) -> None:
        self.only_read += extra.tokens_read
        self.extra = self.extra + extra.loss.detach()
        self.loss = self.loss + extra.loss.detach()
        if self.measured:
            self.target_metrics.append(extra.target_metrics)

    def add_importance(self, importance: TokenImportance | None) -> None:
        if importance is not None:
            self.importance.append(importance)

    def add_entropy(self, entropy_M: Tensor) -> None:
        self.chosen += len(entropy_M)
        self.entropy = self.entropy + entropy_M.sum()

    def add_readings(self, packed: PackedBatch, logp_M: Tensor, entropy_M: Tensor) -> None:
        """`logp_M` comes from the weights at the start of the update."""
        lengths = [len(sample.sampled_positions) for sample in packed.samples]
        parts = zip(packed.samples, logp_M.split(lengths), entropy_M.split(lengths), strict=True)
        self.readings += [part for part in parts if part[0].targets]

    def take_readings(self) -> list[TokenReading]:
        """Those so far, step by step, in one copy."""
        if not self.readings:
            return []
        columns = torch.stack(
            [torch.cat([one[1] for one in self.readings]), torch.cat([one[2] for one in self.readings])]
        )
        learner, entropy = columns.float().cpu().tolist()
        found: list[TokenReading] = []
        for sample, *_ in self.readings:
            name = sample.targets[0].trajectory_id
            steps = [sample.segment.steps[at] for at in sample.sampled_positions]
            for step, same in groupby(range(len(steps)), steps.__getitem__):
                places = [*same]
                part = slice(places[0], places[-1] + 1)
                found.append(TokenReading(name, step, _rounded(learner[part]), _rounded(entropy[part])))
            del learner[: len(steps)], entropy[: len(steps)]
        self.readings = []
        return found

    def add_mismatch(self, packed: PackedBatch, logp_M: Tensor) -> None:
        """`logp_M` comes from the weights at the start of the update."""
        own_M = packed.versions_M == self.version
        gaps_M = (logp_M - packed.sampled_logp_M.to(logp_M)).abs().masked_fill(~own_M, 0.0)
        self.own = self.own + own_M.sum()
        self.mismatch = self.mismatch + gaps_M.sum()
        self.mismatch_max = gaps_M.max().clamp(min=self.mismatch_max)

    def metrics(self, lines: int, targets: int = 0) -> UpdateMetrics:
        if not lines:
            return UpdateMetrics(lines=0, tokens=0, forwarded=0)
        return UpdateMetrics(
            lines=lines,
            tokens=self.rows,
            forwarded=self.rows + self.only_read,
            steps=self.steps,
            loss=self.loss / self.steps,
            ttf=self.extra / self.steps if targets else None,
            targets=targets,
            gradient=self.gradient / self.steps,
            entropy=self.entropy / self.chosen,
            kl_to_start=self.kl / self.compared if self.compared else None,
            mismatch=self.mismatch / self.own if self.own else None,
            mismatch_max=self.mismatch_max if self.own else None,
            importance=self._weights(),
            ratio=self._ratios(),
            routers=self.choices.to_log() if self.choices else None,
        )

    def _weights(self) -> dict[str, float] | None:
        return self._of_tokens("weight_BT", "truncated_BT", "truncated")

    def _ratios(self) -> dict[str, float] | None:
        return self._of_tokens("ratio_BT", "clipped_BT", "clipped")

    def _of_tokens(self, values: str, flags: str, share: str) -> dict[str, float] | None:
        """Over the tokens in the masks of the losses."""
        if not self.importance:
            return None
        values_N, flags_N, mask_N = (
            torch.cat([getattr(importance, name).flatten() for importance in self.importance])
            for name in (values, flags, "mask_BT")
        )
        return _distribution(values_N, flags_N, mask_N, share)


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 5) for value in values]


def _distribution(values_N: Tensor, flags_N: Tensor, mask_N: Tensor, share: str) -> dict[str, float]:
    """Tokens outside the mask are sorted behind the others, so that a GPU is waited for once."""
    values_N, count = values_N.double(), mask_N.sum().double()
    ordered_N, last = values_N.masked_fill(~mask_N, math.inf).sort().values, count - 1
    places = {"least": 0.0, **_QUANTILES, "most": 1.0}
    at_P = torch.stack([(part * last).round().long() for part in places.values()])
    mean = values_N.masked_fill(~mask_N, 0.0).sum() / count
    flagged = (flags_N & mask_N).sum() / count
    first, *found, flagged_share = torch.cat((mean[None], ordered_N[at_P], flagged[None])).tolist()
    return {"mean": first, **dict(zip(places, found, strict=True)), share: flagged_share}
