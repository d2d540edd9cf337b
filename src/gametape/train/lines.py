"""Lines of a batch as trees for one forward, and where in it each chosen token is predicted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from gametape.train.aims import Aim
from gametape.train.batch import Line
from gametape.train.packing import Packed, pack
from gametape.train.trie import Trie


@dataclass(frozen=True)
class Span:
    """The rows that predict the tokens of a target, in the line and, where it is packed beside it, after the hint."""

    line: Line
    aim: Aim
    rows_S: Tensor
    hinted_rows_S: Tensor | None
    places_S: Tensor
    """Which of the chosen tokens they are."""


@dataclass(frozen=True)
class Chosen:
    """The chosen tokens of B lines, M in all. `places_BT` says which they are, line by line; -1 where there is none."""

    lines: tuple[Line, ...]
    packed: Packed
    rows_M: Tensor
    """The row whose hidden state predicts the token."""
    targets_M: Tensor
    sampled_logp_M: Tensor
    places_BT: Tensor
    spans: tuple[Span, ...]

    @property
    def mask_BT(self) -> Tensor:
        return self.places_BT >= 0

    def spread(self, values_M: Tensor) -> Tensor:
        """By line: [B, T], with 0 where there is none."""
        padded = torch.cat((values_M, values_M.new_zeros(1)))
        return padded[self.places_BT]


def chosen_in(lines: Sequence[Line], branches: bool = False) -> Chosen:
    """Lines of one family share all that they begin with. With `branches` the hinted spans hang off their lines,
    forward only."""
    trie = Trie()
    leaves = [leaf for family in _families(lines) for leaf in trie.grow([line.segment.ids for line in family])]
    hung: list[int | None] = []
    for line, leaf in zip(lines, leaves, strict=True):
        for aim in line.aims:
            hung.append(trie.hang(leaf, aim.cut, aim.branch(line.segment), detached=True) if branches else None)
    packed = pack(trie.nodes)
    rows, targets, logprobs, counts = [], [], [], []
    for line, leaf in zip(lines, leaves, strict=True):
        at = torch.tensor(line.chosen)
        rows.append(packed.lines[leaf][at - 1])
        targets.append(torch.tensor(line.segment.ids)[at])
        logprobs.append(torch.tensor(line.segment.logprobs)[at])
        counts.append(len(at))
    spans = _spans(lines, leaves, hung, packed)
    return Chosen(
        tuple(lines), packed, torch.cat(rows), torch.cat(targets), torch.cat(logprobs), _places(counts), tuple(spans)
    )


def read_twice(spans: Sequence[Span]) -> tuple[Packed, list[Tensor], list[Tensor]]:
    """For a teacher with other weights: lines up to the end of their targets, with the hint and without it, and the
    rows that predict the spans in either."""
    trie = Trie()
    hinted: list[int] = []
    plain: list[int] = []
    for _, same in groupby(spans, lambda span: span.line.family):
        family = list(same)
        leaves = trie.grow(
            [_read(span, hinted=True) for span in family] + [_read(span, hinted=False) for span in family]
        )
        hinted += leaves[: len(family)]
        plain += leaves[len(family) :]
    packed = pack(trie.nodes)
    return packed, _last_rows(packed, hinted, spans), _last_rows(packed, plain, spans)


def _read(span: Span, hinted: bool) -> list[int]:
    aim, segment = span.aim, span.line.segment
    return [*segment.ids[: aim.cut], *aim.branch(segment)] if hinted else segment.ids[: aim.start + aim.length]


def _last_rows(packed: Packed, leaves: Sequence[int], spans: Sequence[Span]) -> list[Tensor]:
    rows = (packed.lines[leaf] for leaf in leaves)
    return [line[len(line) - span.aim.length - 1 : -1] for span, line in zip(spans, rows, strict=True)]


def portions(lines: Sequence[Line], most: int) -> Iterator[list[Line]]:
    """Whole families, as many as have `most` tokens together; a larger one comes alone."""
    portion: list[Line] = []
    size = 0
    for family in _families(lines):
        tokens = sum(len(line.segment.ids) for line in family)
        if portion and size + tokens > most:
            yield portion
            portion, size = [], 0
        portion += family
        size += tokens
    if portion:
        yield portion


def _spans(lines: Sequence[Line], leaves: Sequence[int], hung: Sequence[int | None], packed: Packed) -> Iterator[Span]:
    branches = iter(hung)
    before = 0
    for line, leaf in zip(lines, leaves, strict=True):
        chosen = line.chosen
        for aim in line.aims:
            number = next(branches)
            rows = packed.lines[leaf][aim.start - 1 : aim.start + aim.length - 1]
            hinted = None if number is None else packed.lines[number][-aim.length - 1 : -1]
            first = before + chosen.index(aim.start)
            yield Span(line, aim, rows, hinted, torch.arange(first, first + aim.length))
        before += len(chosen)


def _families(lines: Sequence[Line]) -> list[list[Line]]:
    """In the order of the lines, which has families together."""
    return [list(family) for _, family in groupby(lines, lambda line: line.family)]


def _places(counts: Sequence[int]) -> Tensor:
    longest = max(counts)
    starts_B = torch.tensor([0, *counts[:-1]]).cumsum(0)
    steps_T = torch.arange(longest)
    inside_BT = steps_T[None] < torch.tensor(counts)[:, None]
    return torch.where(inside_BT, starts_B[:, None] + steps_T[None], -1)
