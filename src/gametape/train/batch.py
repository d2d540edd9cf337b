"""What one update learns from: samples with their weights in the streams of the loss, packed as trees for one forward,
with the row of the forward that predicts each chosen token."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from random import Random
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gametape.core.token_segments import TokenSegment
from gametape.train.attention_plan import Rows, on_device
from gametape.train.packing import PackedTokens, Trie, common_prefix, pack_nodes
from gametape.train.rollouts import DistillTarget, RolloutGroup

Floats: TypeAlias = npt.NDArray[np.float64]


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
    frozen_prefix: int = 0
    """So many of its first ids go through without a gradient: what is learned after them changes how they are read, and
    not what they are read as."""
    anchored: bool = False
    """Whether its chosen tokens are there to be held to the start of the run."""
    step_advantages: tuple[tuple[int, float], ...] = ()
    """By step, where turns have advantages of their own, in place of `advantage`."""

    @property
    def has_advantage(self) -> bool:
        return bool(self.advantage) or any(value for _, value in self.step_advantages)

    @cached_property
    def token_advantages(self) -> Floats:
        """Of the tokens that the policy chose."""
        if not self.step_advantages:
            return np.full(len(self.sampled_positions), self.advantage)
        by_step = dict(self.step_advantages)
        steps = [self.segment.steps[at] for at in self.sampled_positions]
        return np.array([by_step.get(step, self.advantage) for step in steps], dtype=np.float64)

    @property
    def rollout_key(self) -> tuple[int, int]:
        """The same for all segments of one rollout."""
        return (self.prompt_number, self.rollout_index) if self.rollout_index >= 0 else (id(self), -1)

    @cached_property
    def ids(self) -> Rows:
        """Of the whole segment."""
        return np.array(self.segment.ids, dtype=np.int64)

    @cached_property
    def sampled_positions(self) -> Rows:
        """The positions of the tokens that the policy chose."""
        return np.flatnonzero(self.segment.mask)

    @cached_property
    def sampled_logp(self) -> Floats:
        """The log-probabilities that the sampler gave to the tokens that it chose."""
        return np.array(self.segment.logprobs, dtype=np.float64)[self.sampled_positions]

    @cached_property
    def sampled_versions(self) -> Rows:
        """The versions of the weights that chose them; -1 where these are not of this run."""
        versions = np.array(self.segment.policy_versions, dtype=np.int64)[self.sampled_positions]
        return np.full_like(versions, -1) if self.recorded else versions


def target_sample(
    segment: TokenSegment, prompt_number: int, target: DistillTarget, prefix_gradient: bool
) -> TrainSample:
    """A target by itself, in the segment up to its end."""
    frozen = 0 if prefix_gradient else target.start - 1  # the row before the span predicts its first token
    return TrainSample(target.truncated(segment), prompt_number, targets=(target,), frozen_prefix=frozen)


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


@dataclass(frozen=True)
class PackedBatch:
    """The chosen tokens of B samples, M in all. `positions_BT` says which they are, sample by sample; -1 where there is
    none."""

    samples: tuple[TrainSample, ...]
    packed: PackedTokens
    rows_M: Tensor
    """The row whose hidden state predicts the token."""
    targets_M: Tensor
    versions_M: Tensor
    """Of the weights that chose the token; -1 where they are not of this run."""
    sampled_logp_M: Tensor
    advantages_M: Tensor
    positions_BT: Tensor
    flags_FB: Tensor
    """By sample: whether it has an advantage, whether it was recorded, and how much it is imitated."""
    target_rows: tuple[TargetRows, ...]

    @cached_property
    def mask_BT(self) -> Tensor:
        return self.positions_BT >= 0

    @cached_property
    def learned_BT(self) -> Tensor:
        """Tokens of samples with an advantage."""
        return self.mask_BT & (self.flags_FB[0] != 0)[:, None]

    @cached_property
    def recorded_BT(self) -> Tensor:
        return self.mask_BT & (self.flags_FB[1] != 0)[:, None]

    @cached_property
    def imitated_B(self) -> Tensor:
        """The weight in the supervised loss."""
        return self.flags_FB[2]

    def to(self, device: torch.device | str) -> "PackedBatch":
        """In a copy for each dtype."""
        whole = [self.rows_M, self.targets_M, self.versions_M, self.positions_BT]
        for target in self.target_rows:
            whole += [target.rows_S, target.positions_S]
            whole += [] if target.hinted_rows_S is None else [target.hinted_rows_S]
        rows_M, targets_M, versions_M, positions_BT, *others = on_device([one.numpy() for one in whole], device)
        floats = [self.sampled_logp_M, self.advantages_M, self.flags_FB]
        sampled_logp_M, advantages_M, flags_FB = on_device([one.numpy() for one in floats], device)
        moved = iter(others)
        targets = tuple(
            replace(
                target,
                rows_S=next(moved),
                positions_S=next(moved),
                hinted_rows_S=None if target.hinted_rows_S is None else next(moved),
            )
            for target in self.target_rows
        )
        packed = self.packed.to(device)
        return PackedBatch(
            self.samples,
            packed,
            rows_M,
            targets_M,
            versions_M,
            sampled_logp_M,
            advantages_M,
            positions_BT,
            flags_FB,
            targets,
        )

    def to_padded(self, values_M: Tensor) -> Tensor:
        """By sample: [B, T], with 0 where there is none."""
        padded = torch.cat((values_M, values_M.new_zeros(1)))
        return padded[self.positions_BT]

    def to_tokens(self, values_BT: Tensor) -> Tensor:
        """The reverse: [M]."""
        counts = [len(sample.sampled_positions) for sample in self.samples]
        return torch.cat([values_T[:count] for values_T, count in zip(values_BT, counts, strict=True)])


def pack_samples(samples: Sequence[TrainSample], branches: bool = False) -> PackedBatch:
    """Samples of one prompt share all ids that they begin with, and prompts their instructions. With `branches` the
    hinted spans branch off their samples, forward only."""
    trie = Trie()
    leaves = _leaves(trie, samples)
    hinted_leaves = [
        trie.add_branch(leaf, target.shared_prefix, target.hinted_branch(sample.segment), detached=True)
        if branches
        else None
        for sample, leaf in zip(samples, leaves, strict=True)
        for target in sample.targets
    ]
    packed = pack_nodes(trie.nodes)
    pairs = list(zip(samples, leaves, strict=True))
    rows_M = np.concatenate([packed.paths[leaf][sample.sampled_positions - 1] for sample, leaf in pairs])
    flags = [(sample.has_advantage, sample.recorded, sample.sft_weight) for sample in samples]
    return PackedBatch(
        tuple(samples),
        packed,
        torch.from_numpy(rows_M),
        torch.from_numpy(np.concatenate([sample.ids[sample.sampled_positions] for sample in samples])),
        torch.from_numpy(np.concatenate([sample.sampled_versions for sample in samples])),
        torch.from_numpy(np.concatenate([sample.sampled_logp for sample in samples])),
        torch.from_numpy(np.concatenate([sample.token_advantages for sample in samples])),
        torch.from_numpy(_token_positions([len(sample.sampled_positions) for sample in samples])),
        torch.from_numpy(np.array(flags, dtype=np.float64).T.copy()),
        tuple(_target_rows(samples, leaves, hinted_leaves, packed)),
    )


def _leaves(trie: Trie, samples: Sequence[TrainSample]) -> list[int]:
    """The node that ends each sample."""
    ends: dict[int, int] = {}
    for same in _by_prompt(samples):
        live = [sample for sample in same if not sample.frozen_prefix]
        cut = [sample for sample in same if sample.frozen_prefix]
        ends |= zip(map(id, live), trie.add_sequences([sample.ids for sample in live]), strict=True)
        prefixes = trie.add_sequences([sample.ids[: sample.frozen_prefix] for sample in cut], frozen=True)
        for sample, prefix in zip(cut, prefixes, strict=True):
            at = sample.frozen_prefix
            ends[id(sample)] = trie.add_branch(prefix, at, sample.ids[at:])
    return [ends[id(sample)] for sample in samples]


def pack_for_teacher(
    spans: Sequence[TargetRows], others: Sequence[TrainSample] = ()
) -> tuple[PackedTokens, list[Tensor], list[Tensor], list[Tensor]]:
    """For a teacher with other weights: samples up to the end of their targets, with the hint and without it, and the
    rows that predict the spans in either; and, of other samples, the rows that predict what was chosen in them."""
    trie = Trie()
    hinted: list[int] = []
    plain: list[int] = []
    whole: dict[int, int] = {}
    for prompt in dict.fromkeys(
        [*(span.sample.prompt_number for span in spans), *(one.prompt_number for one in others)]
    ):
        same = [span for span in spans if span.sample.prompt_number == prompt]
        beside = [sample for sample in others if sample.prompt_number == prompt]
        read = [_teacher_ids(span, hinted) for hinted in (True, False) for span in same]
        leaves = trie.add_sequences([*read, *(sample.ids for sample in beside)])
        hinted += leaves[: len(same)]
        plain += leaves[len(same) : len(read)]
        whole |= zip(map(id, beside), leaves[len(read) :], strict=True)
    packed = pack_nodes(trie.nodes)
    chosen = [torch.from_numpy(packed.paths[whole[id(one)]][one.sampled_positions - 1]) for one in others]
    return packed, _last_rows(packed, hinted, spans), _last_rows(packed, plain, spans), chosen


def _teacher_ids(span: TargetRows, hinted: bool) -> list[int]:
    target, segment = span.target, span.sample.segment
    if hinted:
        return [*segment.ids[: target.shared_prefix], *target.hinted_branch(segment)]
    return segment.ids[: target.start + target.length]


def _last_rows(packed: PackedTokens, leaves: Sequence[int], spans: Sequence[TargetRows]) -> list[Tensor]:
    rows = (packed.paths[leaf] for leaf in leaves)
    ends = (line[len(line) - span.target.length - 1 : -1] for span, line in zip(spans, rows, strict=True))
    return [torch.from_numpy(line) for line in ends]


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
    ids = [sample.ids for sample in same]
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
            first = before + int(np.searchsorted(positions, target.start))
            yield TargetRows(
                sample,
                target,
                torch.from_numpy(rows_S),
                None if hinted_S is None else torch.from_numpy(hinted_S),
                torch.arange(first, first + target.length),
            )
        before += len(positions)


def _place(sample: TrainSample) -> tuple[int, int]:
    return sample.prompt_number, sample.rollout_index


def _by_prompt(samples: Sequence[TrainSample]) -> list[list[TrainSample]]:
    """In the order of the samples, which has those of one prompt together."""
    return [list(same) for _, same in groupby(samples, lambda sample: sample.prompt_number)]


def _token_positions(counts: Sequence[int]) -> Rows:
    starts_B = np.cumsum([0, *counts[:-1]])
    steps_T = np.arange(max(counts))
    inside_BT = steps_T[None] < np.array(counts)[:, None]
    return np.where(inside_BT, starts_B[:, None] + steps_T[None], -1)
