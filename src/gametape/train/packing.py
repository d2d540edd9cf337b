"""Trees of token lines as one row of tokens without padding.

A node continues its parent after the parent's first tokens. So the rollouts of a group share one prompt, a hint and the
span after it hang off the rollout they comment on, and unrelated lines are trees of one node. Each token is computed
once, however many lines go through it, and sees exactly what it would see in a line of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gametape.train.buckets import Bucket, Stretch, bucketed


@dataclass(frozen=True)
class Node:
    """Tokens that follow the first `at` tokens of the parent (all of them, where `at` is None), or start a line."""

    ids: Sequence[int]
    parent: int | None = None
    """The number of an earlier node."""
    at: int | None = None
    detached: bool = False
    """Forward only: no gradient goes into these rows or through them, and they cost no backward."""


@dataclass(frozen=True)
class Plan:
    """Who attends to whom: every query row in one `own` bucket, and in one `context` bucket if something precedes."""

    own: tuple[Bucket, ...]
    context: tuple[Bucket, ...]

    def to(self, device: torch.device | str) -> "Plan":
        return Plan(tuple(one.to(device) for one in self.own), tuple(one.to(device) for one in self.context))


@dataclass(frozen=True)
class Packed:
    """Nodes as N rows: those with a gradient first, then the detached ones."""

    ids_N: Tensor
    positions_N: Tensor
    before_N: Tensor
    """The row that predicts this row's token; -1 where a line starts."""
    rows: tuple[slice, ...]
    """Where the tokens of each node lie."""
    lines: tuple[Tensor, ...]
    """For each node, the rows from the start of its line to its own last token."""
    live: int
    """How many rows have a gradient."""
    plan: Plan
    """For the rows with a gradient; they see only each other."""
    detached_plan: Plan
    """For the detached rows: query numbers count from `live`, key numbers from zero."""

    def to(self, device: torch.device | str) -> "Packed":
        return Packed(
            self.ids_N.to(device),
            self.positions_N.to(device),
            self.before_N.to(device),
            self.rows,
            tuple(line.to(device) for line in self.lines),
            self.live,
            self.plan.to(device),
            self.detached_plan.to(device),
        )


def pack(nodes: Sequence[Node]) -> Packed:
    """`rows` and `lines` follow the order of `nodes`; a parent comes before its children."""
    _check(nodes)
    starts, live, total = _starts(nodes)
    own = [torch.arange(start, start + len(node.ids)) for start, node in zip(starts, nodes, strict=True)]
    contexts: list[Tensor] = []
    lines: list[Tensor] = []
    for number, node in enumerate(nodes):
        contexts.append(own[number][:0] if node.parent is None else _upto(lines, own, node.parent, node.at))
        lines.append(torch.cat((contexts[number], own[number])))
    ids_N, positions_N, before_N = (torch.empty(total, dtype=torch.long) for _ in range(3))
    for node, rows, line in zip(nodes, own, lines, strict=True):
        ids_N[rows] = torch.as_tensor(node.ids)
        positions_N[rows] = torch.arange(len(line) - len(rows), len(line))
        before_N[rows] = torch.cat((torch.tensor([-1]), line))[-len(rows) - 1 : -1]
    return Packed(
        ids_N,
        positions_N,
        before_N,
        tuple(slice(start, start + len(node.ids)) for start, node in zip(starts, nodes, strict=True)),
        tuple(lines),
        live,
        _plan(nodes, own, contexts, detached=False, first=0),
        _plan(nodes, own, contexts, detached=True, first=live),
    )


def _check(nodes: Sequence[Node]) -> None:
    for number, node in enumerate(nodes):
        if not len(node.ids):
            raise ValueError(f"node {number} has no tokens")
        if node.parent is None:
            continue
        if not 0 <= node.parent < number:
            raise ValueError(f"node {number} continues node {node.parent}, which does not come before it")
        parent = nodes[node.parent]
        if node.at is not None and not 0 <= node.at <= len(parent.ids):
            raise ValueError(f"node {number} leaves its parent after {node.at} of {len(parent.ids)} tokens")
        if parent.detached and not node.detached:
            raise ValueError(f"node {number} would need the gradient of node {node.parent}, which is detached")


def _starts(nodes: Sequence[Node]) -> tuple[list[int], int, int]:
    """Where each node begins, how many rows have a gradient, and how many rows there are."""
    starts = [0] * len(nodes)
    used, live = 0, 0
    for detached in (False, True):
        live = used
        for number, node in enumerate(nodes):
            if node.detached == detached:
                starts[number] = used
                used += len(node.ids)
    return starts, live, used


def _upto(lines: list[Tensor], own: list[Tensor], parent: int, at: int | None) -> Tensor:
    line, left_out = lines[parent], 0 if at is None else len(own[parent]) - at
    return line[: len(line) - left_out]


def _plan(nodes: Sequence[Node], own: list[Tensor], contexts: list[Tensor], *, detached: bool, first: int) -> Plan:
    """Nodes that follow the same context ask it together: the prompt of a group is one call for all its rollouts."""
    chosen = [number for number, node in enumerate(nodes) if node.detached == detached]
    asking: dict[int, list[int]] = {}
    for number in chosen:
        if len(contexts[number]):
            asking.setdefault(int(contexts[number][-1]), []).append(number)
    together = [
        Stretch(torch.cat([own[number] for number in numbers]) - first, contexts[numbers[0]])
        for numbers in asking.values()
    ]
    return Plan(
        own=bucketed([Stretch(own[number] - first, own[number]) for number in chosen], causal=True),
        context=bucketed(together, causal=False),
    )
