"""What one update learns from: samples with their weights in the streams of the loss, packed as trees for one forward,
with the row of the forward that predicts each chosen token."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from gametape.core.token_segments import TokenSegment
from gametape.train.packing import PackedTokens, Trie, pack_nodes
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

    @property
    def sampled_positions(self) -> list[int]:
        """The positions of the tokens that the policy chose."""
        return [at for at, bit in enumerate(self.segment.mask) if bit]


@dataclass(frozen=True)
class TrainBatch:
    """`rollouts` counts all that were sampled for this update, with a gradient or without: it fixes the normaliser."""

    samples: tuple[TrainSample, ...]
    rollouts: int
    request_numbers: tuple[int, ...] = ()
    """The requests that it comes from, to name it by."""

    @classmethod
    def of_groups(cls, samples: Iterable[TrainSample], groups: Sequence[RolloutGroup]) -> "TrainBatch":
        rollouts = sum(len(group.rollouts) for group in groups)
        return cls(tuple(samples), rollouts, tuple(group.request.number for group in groups))


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
    sampled_logp_M: Tensor
    positions_BT: Tensor
    target_rows: tuple[TargetRows, ...]

    @property
    def mask_BT(self) -> Tensor:
        return self.positions_BT >= 0

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
        logprobs.append(torch.tensor(sample.segment.logprobs)[at])
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
    """All samples of as many prompts as have `max_tokens` tokens together; a larger prompt comes alone."""
    micro: list[TrainSample] = []
    size = 0
    for same in _by_prompt(samples):
        tokens = sum(len(sample.segment.ids) for sample in same)
        if micro and size + tokens > max_tokens:
            yield micro
            micro, size = [], 0
        micro += same
        size += tokens
    if micro:
        yield micro


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


def _by_prompt(samples: Sequence[TrainSample]) -> list[list[TrainSample]]:
    """In the order of the samples, which has those of one prompt together."""
    return [list(same) for _, same in groupby(samples, lambda sample: sample.prompt_number)]


def _token_positions(counts: Sequence[int]) -> Tensor:
    longest = max(counts)
    starts_B = torch.tensor([0, *counts[:-1]]).cumsum(0)
    steps_T = torch.arange(longest)
    inside_BT = steps_T[None] < torch.tensor(counts)[:, None]
    return torch.where(inside_BT, starts_B[:, None] + steps_T[None], -1)
