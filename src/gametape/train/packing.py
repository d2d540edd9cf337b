"""Packs sequences that share prefixes into one tree of rows, and plans the attention over it as few batched calls.

Spans of rows of similar length are padded and share a call.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_SLACK = 16
"""Padding of up to this many rows is cheaper than another call; long spans may be padded by an eighth."""
_ALIGNED = 8
"""Masks have a multiple of this many columns, which the kernels of every device accept."""


@dataclass(frozen=True)
class AttentionSpan:
    """Query rows that all see the same key rows; with `causal`, the i-th query sees the keys up to the i-th."""

    queries_S: Tensor
    keys_K: Tensor


@dataclass(frozen=True)
class AttentionBucket:
    """Row numbers of one batched call. Padding repeats a span's last row, so that every score stays finite."""

    queries_BS: Tensor
    keys_BK: Tensor
    causal: bool
    real_M: Tensor | None
    """Which of the B x S flattened queries are not padding; None where all are."""
    hidden_BK: Tensor | None
    """Keys that are padding and would be seen; None where there are none. Causality hides them by itself."""

    @property
    def rows_M(self) -> Tensor:
        """The row of each query that is not padding; every row once."""
        flat_M = self.queries_BS.flatten()
        return flat_M if self.real_M is None else flat_M[self.real_M]

    def to(self, device: torch.device | str) -> "AttentionBucket":
        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        return AttentionBucket(
            self.queries_BS.to(device), self.keys_BK.to(device), self.causal, moved(self.real_M), moved(self.hidden_BK)
        )


def make_buckets(spans: Iterable[AttentionSpan], *, causal: bool) -> tuple[AttentionBucket, ...]:
    """Each span in one bucket, with spans of similar numbers of queries and of keys."""
    ordered = sorted(spans, key=lambda span: (len(span.keys_K), len(span.queries_S)), reverse=True)
    groups: list[list[AttentionSpan]] = []
    for span in ordered:
        if groups and _alike(groups[-1], span):
            groups[-1].append(span)
        else:
            groups.append([span])
    return tuple(_bucket(group, causal) for group in groups)


def _alike(group: list[AttentionSpan], span: AttentionSpan) -> bool:
    queries = [len(member.queries_S) for member in group] + [len(span.queries_S)]
    return _close(min(queries), max(queries)) and _close(len(span.keys_K), len(group[0].keys_K))


def _close(shorter: int, longer: int) -> bool:
    return longer - shorter <= max(_SLACK, longer // 8)


def _bucket(group: list[AttentionSpan], causal: bool) -> AttentionBucket:
    queries, keys = [len(span.queries_S) for span in group], [len(span.keys_K) for span in group]
    seen_padding = not causal and min(keys) < max(keys)
    wide = -(-max(keys) // _ALIGNED) * _ALIGNED if seen_padding else max(keys)
    return AttentionBucket(
        queries_BS=torch.stack([_padded(span.queries_S, max(queries)) for span in group]),
        keys_BK=torch.stack([_padded(span.keys_K, wide) for span in group]),
        causal=causal,
        real_M=None if min(queries) == max(queries) else (~_beyond(queries, max(queries))).flatten().nonzero()[:, 0],
        hidden_BK=_beyond(keys, wide) if seen_padding else None,
    )


def _padded(rows: Tensor, length: int) -> Tensor:
    return torch.cat((rows, rows[-1:].expand(length - len(rows))))


def _beyond(lengths: list[int], width: int) -> Tensor:
    return torch.arange(width) >= torch.tensor(lengths)[:, None]


@dataclass(frozen=True)
class TokenNode:
    """Tokens that follow the first `at` tokens of the parent (all of them, where `at` is None), or start a sequence."""

    ids: Sequence[int]
    parent: int | None = None
    """The number of an earlier node."""
    at: int | None = None
    detached: bool = False
    """Forward only: no gradient goes into these rows or through them, and they cost no backward."""


@dataclass(frozen=True)
class AttentionPlan:
    """Which rows attend to which: every query row is in one `own` bucket, and in one `context` bucket if tokens precede
    its node."""

    own: tuple[AttentionBucket, ...]
    context: tuple[AttentionBucket, ...]

    def to(self, device: torch.device | str) -> "AttentionPlan":
        return AttentionPlan(
            tuple(bucket.to(device) for bucket in self.own), tuple(bucket.to(device) for bucket in self.context)
        )


@dataclass(frozen=True)
class PackedTokens:
    """Nodes as N rows: those with a gradient first, then the detached ones."""

    ids_N: Tensor
    positions_N: Tensor
    predecessor_N: Tensor
    """The row that predicts this row's token; -1 where a sequence starts."""
    rows: tuple[slice, ...]
    """The rows of each node."""
    paths: tuple[Tensor, ...]
    """For each node, the rows from the start of its sequence to its own last token."""
    gradient_rows: int
    """How many rows have a gradient."""
    plan: AttentionPlan
    """For the rows with a gradient; they see only each other."""
    detached_plan: AttentionPlan
    """For the detached rows: query numbers count from `gradient_rows`, key numbers from zero."""

    def to(self, device: torch.device | str) -> "PackedTokens":
        return PackedTokens(
            self.ids_N.to(device),
            self.positions_N.to(device),
            self.predecessor_N.to(device),
            self.rows,
            tuple(path.to(device) for path in self.paths),
            self.gradient_rows,
            self.plan.to(device),
            self.detached_plan.to(device),
        )


def pack_nodes(nodes: Sequence[TokenNode]) -> PackedTokens:
    """`rows` and `paths` follow the order of `nodes`; a parent comes before its children."""
    _check(nodes)
    starts, gradient_rows, total = _starts(nodes)
    own = [torch.arange(start, start + len(node.ids)) for start, node in zip(starts, nodes, strict=True)]
    contexts: list[Tensor] = []
    paths: list[Tensor] = []
    for number, node in enumerate(nodes):
        contexts.append(own[number][:0] if node.parent is None else _upto(paths, own, node.parent, node.at))
        paths.append(torch.cat((contexts[number], own[number])))
    ids_N, positions_N, predecessor_N = (torch.empty(total, dtype=torch.long) for _ in range(3))
    for node, rows, path in zip(nodes, own, paths, strict=True):
        ids_N[rows] = torch.as_tensor(node.ids)
        positions_N[rows] = torch.arange(len(path) - len(rows), len(path))
        predecessor_N[rows] = torch.cat((torch.tensor([-1]), path))[-len(rows) - 1 : -1]
    return PackedTokens(
        ids_N,
        positions_N,
        predecessor_N,
        tuple(slice(start, start + len(node.ids)) for start, node in zip(starts, nodes, strict=True)),
        tuple(paths),
        gradient_rows,
        _plan(nodes, own, contexts, detached=False, first=0),
        _plan(nodes, own, contexts, detached=True, first=gradient_rows),
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
        if parent.detached and not node.detached:
            raise ValueError(f"node {number} would need the gradient of node {node.parent}, which is detached")


def _starts(nodes: Sequence[TokenNode]) -> tuple[list[int], int, int]:
    """Where each node begins, how many rows have a gradient, and how many rows there are."""
    starts = [0] * len(nodes)
    used, gradient_rows = 0, 0
    for detached in (False, True):
        gradient_rows = used
        for number, node in enumerate(nodes):
            if node.detached == detached:
                starts[number] = used
                used += len(node.ids)
    return starts, gradient_rows, used


def _upto(paths: list[Tensor], own: list[Tensor], parent: int, at: int | None) -> Tensor:
    path, excluded = paths[parent], 0 if at is None else len(own[parent]) - at
    return path[: len(path) - excluded]


def _plan(
    nodes: Sequence[TokenNode], own: list[Tensor], contexts: list[Tensor], *, detached: bool, first: int
) -> AttentionPlan:
    """Nodes that follow the same context share a span: the prompt of a group is one call for all its rollouts."""
    numbers = [number for number, node in enumerate(nodes) if node.detached == detached]
    by_context: dict[int, list[int]] = {}
    for number in numbers:
        if len(contexts[number]):
            by_context.setdefault(int(contexts[number][-1]), []).append(number)
    context_spans = [
        AttentionSpan(torch.cat([own[number] for number in sharing]) - first, contexts[sharing[0]])
        for sharing in by_context.values()
    ]
    return AttentionPlan(
        own=make_buckets([AttentionSpan(own[number] - first, own[number]) for number in numbers], causal=True),
        context=make_buckets(context_spans, causal=False),
    )


class Trie:
    """Nodes to be packed. A sequence branches off the earlier one with which it shares the longest prefix."""

    def __init__(self) -> None:
        self.nodes: list[TokenNode] = []
        self._starts: list[int] = []
        """By node: how many tokens of its sequence come before it."""

    def add_sequences(self, sequences: Sequence[Sequence[int]]) -> list[int]:
        """For each sequence the node that ends it, which has at least its last token. Only these sequences are compared
        with each other."""
        leaves: list[int] = []
        for number, ids in enumerate(sequences):
            shared = [min(common_prefix(ids, other), len(ids) - 1) for other in sequences[:number]]
            most = max(shared, default=0)
            leaves.append(self.add_branch(leaves[shared.index(most)], most, ids[most:]) if most else self._root(ids))
        return leaves

    def add_branch(self, leaf: int, at: int, ids: Sequence[int], detached: bool = False) -> int:
        """Add a node of these tokens after the first `at` tokens of the sequence that ends with `leaf`."""
        node = next(above for above in self._upwards(leaf) if self._starts[above] < at)
        return self._added(TokenNode(ids, parent=node, at=at - self._starts[node], detached=detached), at)

    def _root(self, ids: Sequence[int]) -> int:
        return self._added(TokenNode(ids), 0)

    def _added(self, node: TokenNode, start: int) -> int:
        self.nodes.append(node)
        self._starts.append(start)
        return len(self.nodes) - 1

    def _upwards(self, node: int | None) -> Iterator[int]:
        while node is not None:
            yield node
            node = self.nodes[node].parent


def common_prefix(ids: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    pairs = zip(ids, other, strict=False)
    return next((index for index, (mine, theirs) in enumerate(pairs) if mine != theirs), min(len(ids), len(other)))
