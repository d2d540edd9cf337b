"""What one update learns from: samples with their weights in the streams of the loss, packed as trees for one forward,
with the row of the forward that predicts each chosen token."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from random import Random

import torch
from torch import Tensor

from gametape.core.token_segments import TokenSegment
from gametape.train.packing import PackedTokens, Trie, common_prefix, pack_nodes
from gametape.train.rollouts import DistillTarget, RolloutGroup


@dataclass(frozen=True)
class TrainSample:
    """One context with the tokens that were chosen in it. Samples of one `prompt_number` begin with the same prompt."""

    segment: TokenSegment
    prompt_number: int
    advantage: float = 0.0
    """In the policy gradient; 0 leaves the sample out of it."""
    sft_weight: float = 0.0
    """How much its chosen tokens are made likelier, as in supervised training."""
    targets: tuple[DistillTarget, ...] = ()
    """Turns at which a hint is distilled, besides the rest."""
    rollout_index: int = -1
    """The rollout of its prompt that it is a segment of; -1 where the sample is all there is of its rollout."""
    recorded: bool = False
    """Whether it is earlier work, sampled before this run."""
    step_advantages: tuple[tuple[int, float], ...] = ()
    """By step, where turns have advantages of their own, in place of `advantage`."""

    @property
    def has_advantage(self) -> bool:
        return bool(self.advantage) or any(value for _, value in self.step_advantages)

    @property
    def token_advantages(self) -> Tensor:
        """Of the tokens that the policy chose."""
        by_step = dict(self.step_advantages)
        steps = [self.segment.steps[at] for at in self.sampled_positions]
        return torch.tensor([by_step.get(step, self.advantage) for step in steps], dtype=torch.float64)

    @property
    def rollout_key(self) -> tuple[int, int]:
        """The same for all segments of one rollout."""
        return (self.prompt_number, self.rollout_index) if self.rollout_index >= 0 else (id(self), -1)

    @cached_property
    def sampled_positions(self) -> list[int]:
        """The positions of the tokens that the policy chose."""
        return [at for at, bit in enumerate(self.segment.mask) if bit]

    @cached_property
    def sampled_logp(self) -> Tensor:
        """The log-probabilities that the sampler gave to the tokens that it chose."""
        return torch.tensor([self.segment.logprobs[at] for at in self.sampled_positions], dtype=torch.float64)


@dataclass(frozen=True)
class TrainBatch:
    """`rollouts` counts all that were sampled for this update, with a gradient or without: it fixes the normaliser. A
    minibatch has its share of them."""

    samples: tuple[TrainSample, ...]
    rollouts: float
    request_numbers: tuple[int, ...] = ()
    """The requests that it comes from, to name it by."""
    tokens: float | None = None
    """How many tokens the policy chose in all of these rollouts; None where it is not known."""

    @classmethod
    def of_groups(cls, samples: Iterable[TrainSample], groups: Sequence[RolloutGroup]) -> "TrainBatch":
        rollouts = [rollout for group in groups for rollout in group.rollouts]
        tokens = sum(sum(segment.mask) for rollout in rollouts for segment in rollout.segments)
        return cls(tuple(samples), len(rollouts), tuple(group.request.number for group in groups), tokens)

    def in_order(self) -> "TrainBatch":
        """By prompt and rollout, whatever the order of its samples was."""
        return replace(self, samples=tuple(sorted(self.samples, key=_place)))

    def minibatches(self, count: int, seed: int) -> list["TrainBatch"]:
        """At most `count` batches with about as many rollouts each, in a random order of prompts. Segments of a rollout
        stay together, and rollouts of a prompt as far as that goes."""
        if count == 1:
            return [self.in_order()]
        prompts = _by_prompt(self.in_order().samples)
        Random(seed).shuffle(prompts)
        rollouts: dict[tuple[int, int], list[TrainSample]] = {}
        for sample in (sample for same in prompts for sample in same):
            rollouts.setdefault(sample.rollout_key, []).append(sample)
        units = list(rollouts.values())
        parts = [units[len(units) * at // count : len(units) * (at + 1) // count] for at in range(count)]
        share = replace(
            self, rollouts=self.rollouts / count, tokens=None if self.tokens is None else self.tokens / count
        )
        return [
            replace(share, samples=tuple(sample for unit in part for sample in unit)).in_order()
            for part in parts
            if part
        ]


@dataclass(frozen=True)
class TargetRows:
    """The rows that predict the tokens of a target, in its sample and, where it is packed beside it, after the hint."""

    sample: TrainSample
    target: DistillTarget
    rows_S: Tensor
    hinted_rows_S: Tensor | None
    positions_S: Tensor
    """Which of the chosen tokens they are."""

    def to(self, device: torch.device | str) -> "TargetRows":
        hinted_S = None if self.hinted_rows_S is None else self.hinted_rows_S.to(device)
        return replace(
            self, rows_S=self.rows_S.to(device), hinted_rows_S=hinted_S, positions_S=self.positions_S.to(device)
        )


@dataclass(frozen=True)
class PackedBatch:
    """The chosen tokens of B samples, M in all. `positions_BT` says which they are, sample by sample; -1 where there is
    none."""

    samples: tuple[TrainSample, ...]
    packed: PackedTokens
    rows_M: Tensor
    """The row whose hidden state predicts the token."""
    targets_M: Tensor
    sampled_logp_M: Tensor
    positions_BT: Tensor
    target_rows: tuple[TargetRows, ...]

    @property
    def mask_BT(self) -> Tensor:
        return self.positions_BT >= 0

    def to(self, device: torch.device | str) -> "PackedBatch":
        return replace(
            self,
            packed=self.packed.to(device),
            rows_M=self.rows_M.to(device),
            targets_M=self.targets_M.to(device),
            sampled_logp_M=self.sampled_logp_M.to(device),
            positions_BT=self.positions_BT.to(device),
            target_rows=tuple(target.to(device) for target in self.target_rows),
        )

    def to_padded(self, values_M: Tensor) -> Tensor:
        """By sample: [B, T], with 0 where there is none."""
        padded = torch.cat((values_M, values_M.new_zeros(1)))
        return padded[self.positions_BT]


def pack_samples(samples: Sequence[TrainSample], branches: bool = False) -> PackedBatch:
    """Samples of one prompt share all ids that they begin with. With `branches` the hinted spans branch off their
    samples, forward only."""
    trie = Trie()
    leaves = [
        leaf for same in _by_prompt(samples) for leaf in trie.add_sequences([sample.segment.ids for sample in same])
    ]
    hinted_leaves = [
        trie.add_branch(leaf, target.shared_prefix, target.hinted_branch(sample.segment), detached=True)
        if branches
        else None
        for sample, leaf in zip(samples, leaves, strict=True)
        for target in sample.targets
    ]
    packed = pack_nodes(trie.nodes)
    rows, targets, logprobs, counts = [], [], [], []
    for sample, leaf in zip(samples, leaves, strict=True):
        at = torch.tensor(sample.sampled_positions)
        rows.append(packed.paths[leaf][at - 1])
        targets.append(torch.tensor(sample.segment.ids)[at])
        logprobs.append(sample.sampled_logp)
        counts.append(len(at))
    return PackedBatch(
        tuple(samples),
        packed,
        torch.cat(rows),
        torch.cat(targets),
        torch.cat(logprobs),
        _token_positions(counts),
        tuple(_target_rows(samples, leaves, hinted_leaves, packed)),
    )


def pack_for_teacher(spans: Sequence[TargetRows]) -> tuple[PackedTokens, list[Tensor], list[Tensor]]:
    """For a teacher with other weights: samples up to the end of their targets, with the hint and without it, and the
    rows that predict the spans in either."""
    trie = Trie()
    hinted: list[int] = []
    plain: list[int] = []
    for _, group in groupby(spans, lambda span: span.sample.prompt_number):
        same = list(group)
        leaves = trie.add_sequences(
            [_teacher_ids(span, hinted=True) for span in same] + [_teacher_ids(span, hinted=False) for span in same]
        )
        hinted += leaves[: len(same)]
        plain += leaves[len(same) :]
    packed = pack_nodes(trie.nodes)
    return packed, _last_rows(packed, hinted, spans), _last_rows(packed, plain, spans)


def _teacher_ids(span: TargetRows, hinted: bool) -> list[int]:
    target, segment = span.target, span.sample.segment
    if hinted:
        return [*segment.ids[: target.shared_prefix], *target.hinted_branch(segment)]
    return segment.ids[: target.start + target.length]


def _last_rows(packed: PackedTokens, leaves: Sequence[int], spans: Sequence[TargetRows]) -> list[Tensor]:
    rows = (packed.paths[leaf] for leaf in leaves)
    return [line[len(line) - span.target.length - 1 : -1] for span, line in zip(spans, rows, strict=True)]


def micro_batches(samples: Sequence[TrainSample], max_tokens: int) -> Iterator[list[TrainSample]]:
    """Parts of at most `max_tokens` rows each, of which a sample takes those that it does not share. Samples of a
    prompt stay together where they fit; a larger sample comes alone."""
    micro: list[TrainSample] = []
    size = 0
    for same in _by_prompt(samples):
        rows = _packed_rows(same)
        if micro and size + sum(rows) > max_tokens:
            yield micro
            micro, size = [], 0
        for sample, own in zip(same, rows, strict=True):
            if micro and size + own > max_tokens:
                yield micro
                micro, size, own = [], 0, len(sample.segment.ids)  # noqa: PLW2901 - the shared rows went with the others
            micro.append(sample)
            size += own
    if micro:
        yield micro


def _packed_rows(same: Sequence[TrainSample]) -> list[int]:
    """The rows that each sample of a prompt adds to those before it."""
    ids = [sample.segment.ids for sample in same]
    return [
        len(own) - max((common_prefix(own, other) for other in ids[:number]), default=0)
        for number, own in enumerate(ids)
    ]


def _target_rows(
    samples: Sequence[TrainSample], leaves: Sequence[int], hinted_leaves: Sequence[int | None], packed: PackedTokens
) -> Iterator[TargetRows]:
    hinted = iter(hinted_leaves)
    before = 0
    for sample, leaf in zip(samples, leaves, strict=True):
        positions = sample.sampled_positions
        for target in sample.targets:
            hinted_leaf = next(hinted)
            rows_S = packed.paths[leaf][target.start - 1 : target.start + target.length - 1]
            hinted_S = None if hinted_leaf is None else packed.paths[hinted_leaf][-target.length - 1 : -1]
            first = before + positions.index(target.start)
            yield TargetRows(sample, target, rows_S, hinted_S, torch.arange(first, first + target.length))
        before += len(positions)


def _place(sample: TrainSample) -> tuple[int, int]:
    return sample.prompt_number, sample.rollout_index


def _by_prompt(samples: Sequence[TrainSample]) -> list[list[TrainSample]]:
    """In the order of the samples, which has those of one prompt together."""
    return [list(same) for _, same in groupby(samples, lambda sample: sample.prompt_number)]


def _token_positions(counts: Sequence[int]) -> Tensor:
    longest = max(counts)
    starts_B = torch.tensor([0, *counts[:-1]]).cumsum(0)
    steps_T = torch.arange(longest)
    inside_BT = steps_T[None] < torch.tensor(counts)[:, None]
    return torch.where(inside_BT, starts_B[:, None] + steps_T[None], -1)
