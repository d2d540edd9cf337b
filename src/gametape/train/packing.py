"""Packs sequences that share prefixes into one tree of rows, and says which of them attend to which."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from gametape.train.attention_plan import AttentionPlan, AttentionSpan, Rows, on_device

TokenIds: TypeAlias = Sequence[int] | Rows
_LONG_OPENING = 64
"""Instructions and tools that different prompts begin with are computed once from so many tokens on: below that more
and shorter calls of the attention kernel would cost more."""


@dataclass(frozen=True)
class TokenNode:
    """Tokens that follow the first `at` tokens of the parent (all of them, where `at` is None), or start a sequence."""

    ids: TokenIds
    parent: int | None = None
    """The number of an earlier node."""
    at: int | None = None
    detached: bool = False
    """Forward only: no gradient goes into these rows or through them, and they cost no backward."""
    frozen: bool = False
    """Forward only, like detached ones, but others may follow it: they see its keys and values as constants."""


@dataclass(frozen=True)
class PackedTokens:
    """Nodes as N rows: first the frozen ones, then those with a gradient, then the detached ones."""

    ids_N: Tensor
    positions_N: Tensor
    predecessor_N: Tensor
    """The row that predicts this row's token; -1 where a sequence starts."""
    rows: tuple[slice, ...]
    """The rows of each node."""
    paths: tuple[Rows, ...]
    """For each node, the rows from the start of its sequence to its own last token."""
    gradient_rows: int
    """How many rows have a gradient."""
    plan: AttentionPlan
    """For the rows with a gradient; they see each other, and frozen ones. Queries count from the first of them, keys
    from zero, as in the others."""
    detached_plan: AttentionPlan
    frozen_plan: AttentionPlan

    @property
    def frozen_rows(self) -> int:
        return self.frozen_plan.rows

    @cached_property
    def whole_plan(self) -> AttentionPlan:
        """For all rows behind the frozen ones in one pass; nothing that is learned may depend on what comes out of the
        detached ones."""
        return self.plan.followed_by(self.detached_plan)

    def to(self, device: torch.device | str) -> "PackedTokens":
        """In one copy. Paths stay on the host."""
        columns = [column.numpy() for column in (self.ids_N, self.positions_N, self.predecessor_N)]
        ids_N, positions_N, predecessor_N = on_device(columns, device)
        return replace(
            self,
            ids_N=ids_N,
            positions_N=positions_N,
            predecessor_N=predecessor_N,
            plan=self.plan.to(device),
            detached_plan=self.detached_plan.to(device),
            frozen_plan=self.frozen_plan.to(device),
        )


def pack_nodes(nodes: Sequence[TokenNode]) -> PackedTokens:
    """`rows` and `paths` follow the order of `nodes`; a parent comes before its children."""
    _check(nodes)
    starts, (frozen, gradient_rows, detached) = _starts(nodes)
    total = frozen + gradient_rows + detached
    own = [np.arange(start, start + len(node.ids)) for start, node in zip(starts, nodes, strict=True)]
    contexts: list[Rows] = []
    paths: list[Rows] = []
    for number, node in enumerate(nodes):
        contexts.append(own[number][:0] if node.parent is None else _upto(paths, own, node.parent, node.at))
        paths.append(np.concatenate((contexts[number], own[number])))
    ids_N, positions_N, predecessor_N = (np.empty(total, dtype=np.int64) for _ in range(3))
    for node, start, context in zip(nodes, starts, contexts, strict=True):
        end = start + len(node.ids)
        ids_N[start:end] = node.ids
        positions_N[start:end] = np.arange(len(context), len(context) + len(node.ids))
        predecessor_N[start:end] = np.arange(start - 1, end - 1)
        predecessor_N[start] = context[-1] if len(context) else -1
    return PackedTokens(
        torch.from_numpy(ids_N),
        torch.from_numpy(positions_N),
        torch.from_numpy(predecessor_N),
        tuple(slice(start, start + len(node.ids)) for start, node in zip(starts, nodes, strict=True)),
        tuple(paths),
        gradient_rows,
        _plan(nodes, own, contexts, 1, first=frozen),
        _plan(nodes, own, contexts, 2, first=frozen + gradient_rows),
        _plan(nodes, own, contexts, 0, first=0),
    )


def _check(nodes: Sequence[TokenNode]) -> None:
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
        if node.frozen and not parent.frozen:
            raise ValueError(f"node {number} is frozen and would need node {node.parent}, which is not")
        if parent.detached and not node.detached:
            raise ValueError(f"node {number} would need the gradient of node {node.parent}, which is detached")


def _stage(node: TokenNode) -> int:
    """Which pass its rows go through: before those with a gradient, with them, or after them."""
    return 0 if node.frozen else 2 if node.detached else 1


def _starts(nodes: Sequence[TokenNode]) -> tuple[list[int], list[int]]:
    """Where each node begins, and how many rows each stage has."""
    starts, rows = [0] * len(nodes), [0, 0, 0]
    for stage in range(len(rows)):
        for number, node in enumerate(nodes):
            if _stage(node) == stage:
                starts[number] = sum(rows)
                rows[stage] += len(node.ids)
    return starts, rows


def _upto(paths: list[Rows], own: list[Rows], parent: int, at: int | None) -> Rows:
    path, excluded = paths[parent], 0 if at is None else len(own[parent]) - at
    return path[: len(path) - excluded]


def _plan(nodes: Sequence[TokenNode], own: list[Rows], contexts: list[Rows], stage: int, first: int) -> AttentionPlan:
    numbers = [number for number, node in enumerate(nodes) if _stage(node) == stage]
    by_context: dict[int, list[int]] = {}
    for number in numbers:
        if len(contexts[number]):
            by_context.setdefault(int(contexts[number][-1]), []).append(number)
    spans = [
        AttentionSpan(np.concatenate([own[number] for number in sharing]) - first, contexts[sharing[0]])
        for sharing in by_context.values()
    ]
    return AttentionPlan(tuple(len(own[number]) for number in numbers), first, tuple(spans))


class Trie:
    """Nodes to be packed. A sequence branches off the earlier one with which it shares the longest prefix."""

    def __init__(self) -> None:
        self.nodes: list[TokenNode] = []
        self._starts: list[int] = []
        """By node: how many tokens of its sequence come before it."""
        self._openings: list[tuple[TokenIds, int]] = []
        """The first of each lot of sequences, with the node that ends it: lots of different prompts may still begin
        alike, with the same instructions and tools."""

    def add_sequences(self, sequences: Sequence[TokenIds], frozen: bool = False) -> list[int]:
        """For each sequence the node that ends it, which has at least its last token. Only these sequences are compared
        with each other, and with the first of earlier lots."""
        leaves: list[int] = []
        known = [one for one in self._openings if self.nodes[one[1]].frozen == frozen]
        others = len(known)
        for ids in sequences:
            shared = [min(common_prefix(ids, other), len(ids) - 1) for other, _ in known]
            shared = [count if at >= others or count >= _LONG_OPENING else 0 for at, count in enumerate(shared)]
            most = max(shared, default=0)
            leaf = self.add_branch(known[shared.index(most)][1], most, ids[most:], frozen=frozen) if most else None
            leaves.append(self._added(TokenNode(ids, frozen=frozen), 0) if leaf is None else leaf)
            known.append((ids, leaves[-1]))
        self._openings += [(sequences[0], leaves[0])] if sequences else []
        return leaves

    def add_branch(self, leaf: int, at: int, ids: TokenIds, detached: bool = False, frozen: bool = False) -> int:
        """Add a node of these tokens after the first `at` tokens of the sequence that ends with `leaf`."""
        node = next(above for above in self._upwards(leaf) if self._starts[above] < at)
        added = TokenNode(ids, parent=node, at=at - self._starts[node], detached=detached, frozen=frozen)
        return self._added(added, at)

    def _added(self, node: TokenNode, start: int) -> int:
        self.nodes.append(node)
        self._starts.append(start)
        return len(self.nodes) - 1

    def _upwards(self, node: int | None) -> Iterator[int]:
        while node is not None:
            yield node
            node = self.nodes[node].parent


def common_prefix(ids: TokenIds, other: TokenIds) -> int:
    """How many tokens both begin with."""
    length = min(len(ids), len(other))
    differ = np.asarray(ids[:length]) != np.asarray(other[:length])
    return int(differ.argmax()) if differ.any() else length
