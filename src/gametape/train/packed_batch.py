"""Lines of a batch as trees for one forward, and where in it each chosen token is predicted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from gametape.train.batch import TrainSample
from gametape.train.distill_target import DistillTarget
from gametape.train.packing import PackedTokens, Trie, pack_nodes


@dataclass(frozen=True)
class PackedTarget:
    """The rows that predict the tokens of a target, in the line and, where it is packed beside it, after the hint."""

    sample: TrainSample
    target: DistillTarget
    rows_S: Tensor
    hinted_rows_S: Tensor | None
    positions_S: Tensor
    """Which of the chosen tokens they are."""


@dataclass(frozen=True)
class PackedBatch:
    """The chosen tokens of B lines, M in all. `places_BT` says which they are, line by line; -1 where there is none."""

    samples: tuple[TrainSample, ...]
    packed: PackedTokens
    rows_M: Tensor
    """The row whose hidden state predicts the token."""
    targets_M: Tensor
    sampled_logp_M: Tensor
    positions_BT: Tensor
    targets: tuple[PackedTarget, ...]

    @property
    def mask_BT(self) -> Tensor:
        return self.positions_BT >= 0

    def to_padded(self, values_M: Tensor) -> Tensor:
        """By line: [B, T], with 0 where there is none."""
        padded = torch.cat((values_M, values_M.new_zeros(1)))
        return padded[self.positions_BT]


def pack_samples(lines: Sequence[TrainSample], branches: bool = False) -> PackedBatch:
    """Lines of one family share all that they begin with. With `branches` the hinted spans hang off their lines,
    forward only."""
    trie = Trie()
    leaves = [
        leaf for family in _by_prompt(lines) for leaf in trie.add_sequences([line.segment.ids for line in family])
    ]
    hung: list[int | None] = []
    for line, leaf in zip(lines, leaves, strict=True):
        for aim in line.targets:
            hung.append(
                trie.add_branch(leaf, aim.shared_prefix, aim.hinted_branch(line.segment), detached=True)
                if branches
                else None
            )
    packed = pack_nodes(trie.nodes)
    rows, targets, logprobs, counts = [], [], [], []
    for line, leaf in zip(lines, leaves, strict=True):
        at = torch.tensor(line.sampled_positions)
        rows.append(packed.lines[leaf][at - 1])
        targets.append(torch.tensor(line.segment.ids)[at])
        logprobs.append(torch.tensor(line.segment.logprobs)[at])
        counts.append(len(at))
    spans = _packed_targets(lines, leaves, hung, packed)
    return PackedBatch(
        tuple(lines),
        packed,
        torch.cat(rows),
        torch.cat(targets),
        torch.cat(logprobs),
        _token_positions(counts),
        tuple(spans),
    )


def pack_for_teacher(spans: Sequence[PackedTarget]) -> tuple[PackedTokens, list[Tensor], list[Tensor]]:
    """For a teacher with other weights: lines up to the end of their targets, with the hint and without it, and the
    rows that predict the spans in either."""
    trie = Trie()
    hinted: list[int] = []
    plain: list[int] = []
    for _, same in groupby(spans, lambda span: span.sample.prompt_number):
        family = list(same)
        leaves = trie.add_sequences(
            [_teacher_ids(span, hinted=True) for span in family] + [_teacher_ids(span, hinted=False) for span in family]
        )
        hinted += leaves[: len(family)]
        plain += leaves[len(family) :]
    packed = pack_nodes(trie.nodes)
    return packed, _last_rows(packed, hinted, spans), _last_rows(packed, plain, spans)


def _teacher_ids(span: PackedTarget, hinted: bool) -> list[int]:
    aim, segment = span.target, span.sample.segment
    return (
        [*segment.ids[: aim.shared_prefix], *aim.hinted_branch(segment)]
        if hinted
        else segment.ids[: aim.start + aim.length]
    )


def _last_rows(packed: PackedTokens, leaves: Sequence[int], spans: Sequence[PackedTarget]) -> list[Tensor]:
    rows = (packed.lines[leaf] for leaf in leaves)
    return [line[len(line) - span.target.length - 1 : -1] for span, line in zip(spans, rows, strict=True)]


def micro_batches(lines: Sequence[TrainSample], most: int) -> Iterator[list[TrainSample]]:
    """Whole families, as many as have `most` tokens together; a larger one comes alone."""
    portion: list[TrainSample] = []
    size = 0
    for family in _by_prompt(lines):
        tokens = sum(len(line.segment.ids) for line in family)
        if portion and size + tokens > most:
            yield portion
            portion, size = [], 0
        portion += family
        size += tokens
    if portion:
        yield portion


def _packed_targets(
    lines: Sequence[TrainSample], leaves: Sequence[int], hung: Sequence[int | None], packed: PackedTokens
) -> Iterator[PackedTarget]:
    branches = iter(hung)
    before = 0
    for line, leaf in zip(lines, leaves, strict=True):
        chosen = line.sampled_positions
        for aim in line.targets:
            number = next(branches)
            rows = packed.lines[leaf][aim.start - 1 : aim.start + aim.length - 1]
            hinted = None if number is None else packed.lines[number][-aim.length - 1 : -1]
            first = before + chosen.index(aim.start)
            yield PackedTarget(line, aim, rows, hinted, torch.arange(first, first + aim.length))
        before += len(chosen)


def _by_prompt(lines: Sequence[TrainSample]) -> list[list[TrainSample]]:
    """In the order of the lines, which has families together."""
    return [list(family) for _, family in groupby(lines, lambda line: line.prompt_number)]


def _token_positions(counts: Sequence[int]) -> Tensor:
    longest = max(counts)
    starts_B = torch.tensor([0, *counts[:-1]]).cumsum(0)
    steps_T = torch.arange(longest)
    inside_BT = steps_T[None] < torch.tensor(counts)[:, None]
    return torch.where(inside_BT, starts_B[:, None] + steps_T[None], -1)
