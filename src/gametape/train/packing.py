"""Attention over many stretches of rows as few batched calls: stretches of like length are padded and go together."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_SLACK = 16
"""Padding of up to this many rows is cheaper than another call; long stretches may be padded by an eighth."""
_ALIGNED = 8
"""Masks are this many columns or a multiple: what the kernels of every device accept."""


@dataclass(frozen=True)
class AttentionSpan:
    """Query rows that all see the same key rows; with `causal`, the i-th query sees the keys up to the i-th."""

    queries_S: Tensor
    keys_K: Tensor


@dataclass(frozen=True)
class AttentionBucket:
    """Row numbers of one batched call. Padding repeats a stretch's last row, so that every score stays finite."""

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


def make_buckets(stretches: Iterable[AttentionSpan], *, causal: bool) -> tuple[AttentionBucket, ...]:
    """Every stretch in one bucket, with stretches whose numbers of queries and of keys are close to its own."""
    ordered = sorted(stretches, key=lambda one: (len(one.keys_K), len(one.queries_S)), reverse=True)
    together: list[list[AttentionSpan]] = []
    for one in ordered:
        if together and _alike(together[-1], one):
            together[-1].append(one)
        else:
            together.append([one])
    return tuple(_bucket(group, causal) for group in together)


def _alike(group: list[AttentionSpan], one: AttentionSpan) -> bool:
    queries = [len(other.queries_S) for other in group] + [len(one.queries_S)]
    return _close(min(queries), max(queries)) and _close(len(one.keys_K), len(group[0].keys_K))


def _close(shorter: int, longer: int) -> bool:
    return longer - shorter <= max(_SLACK, longer // 8)


def _bucket(group: list[AttentionSpan], causal: bool) -> AttentionBucket:
    queries, keys = [len(one.queries_S) for one in group], [len(one.keys_K) for one in group]
    seen_padding = not causal and min(keys) < max(keys)
    wide = -(-max(keys) // _ALIGNED) * _ALIGNED if seen_padding else max(keys)
    return AttentionBucket(
        queries_BS=torch.stack([_padded(one.queries_S, max(queries)) for one in group]),
        keys_BK=torch.stack([_padded(one.keys_K, wide) for one in group]),
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
    """Tokens that follow the first `at` tokens of the parent (all of them, where `at` is None), or start a line."""

    ids: Sequence[int]
    parent: int | None = None
    """The number of an earlier node."""
    at: int | None = None
    detached: bool = False
    """Forward only: no gradient goes into these rows or through them, and they cost no backward."""


@dataclass(frozen=True)
class AttentionPlan:
    """Who attends to whom: every query row in one `own` bucket, and in one `context` bucket if something precedes."""

    own: tuple[AttentionBucket, ...]
    context: tuple[AttentionBucket, ...]

    def to(self, device: torch.device | str) -> "AttentionPlan":
        return AttentionPlan(tuple(one.to(device) for one in self.own), tuple(one.to(device) for one in self.context))


@dataclass(frozen=True)
class PackedTokens:
    """Nodes as N rows: those with a gradient first, then the detached ones."""

    ids_N: Tensor
    positions_N: Tensor
    predecessor_N: Tensor
    """The row that predicts this row's token; -1 where a line starts."""
    rows: tuple[slice, ...]
    """Where the tokens of each node lie."""
    lines: tuple[Tensor, ...]
    """For each node, the rows from the start of its line to its own last token."""
    gradient_rows: int
    """How many rows have a gradient."""
    plan: AttentionPlan
    """For the rows with a gradient; they see only each other."""
    detached_plan: AttentionPlan
    """For the detached rows: query numbers count from `live`, key numbers from zero."""

    def to(self, device: torch.device | str) -> "PackedTokens":
        return PackedTokens(
            self.ids_N.to(device),
            self.positions_N.to(device),
            self.predecessor_N.to(device),
            self.rows,
            tuple(line.to(device) for line in self.lines),
            self.gradient_rows,
            self.plan.to(device),
            self.detached_plan.to(device),
        )


def pack_nodes(nodes: Sequence[TokenNode]) -> PackedTokens:
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
    return PackedTokens(
        ids_N,
        positions_N,
        before_N,
        tuple(slice(start, start + len(node.ids)) for start, node in zip(starts, nodes, strict=True)),
        tuple(lines),
        live,
        _plan(nodes, own, contexts, detached=False, first=0),
        _plan(nodes, own, contexts, detached=True, first=live),
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


def _plan(
    nodes: Sequence[TokenNode], own: list[Tensor], contexts: list[Tensor], *, detached: bool, first: int
) -> AttentionPlan:
    """Nodes that follow the same context ask it together: the prompt of a group is one call for all its rollouts."""
    chosen = [number for number, node in enumerate(nodes) if node.detached == detached]
    asking: dict[int, list[int]] = {}
    for number in chosen:
        if len(contexts[number]):
            asking.setdefault(int(contexts[number][-1]), []).append(number)
    together = [
        AttentionSpan(torch.cat([own[number] for number in numbers]) - first, contexts[numbers[0]])
        for numbers in asking.values()
    ]
    return AttentionPlan(
        own=make_buckets([AttentionSpan(own[number] - first, own[number]) for number in chosen], causal=True),
        context=make_buckets(together, causal=False),
    )


class Trie:
    """Nodes to be packed. A line leaves the line before it with which it has most in common where they part."""

    def __init__(self) -> None:
        self.nodes: list[TokenNode] = []
        self._starts: list[int] = []
        """By node: how many tokens of its lines come before it."""

    def add_sequences(self, lines: Sequence[Sequence[int]]) -> list[int]:
        """For each line the node with which it ends, which has its last token at least. Only these lines are compared
        with each other."""
        leaves: list[int] = []
        for number, ids in enumerate(lines):
            shared = [min(common_prefix(ids, other), len(ids) - 1) for other in lines[:number]]
            most = max(shared, default=0)
            leaves.append(self.add_branch(leaves[shared.index(most)], most, ids[most:]) if most else self._root(ids))
        return leaves

    def add_branch(self, leaf: int, at: int, ids: Sequence[int], detached: bool = False) -> int:
        """A node of these tokens after the first `at` ones of the line that ends with `leaf`."""
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
    return next((at for at, (mine, theirs) in enumerate(pairs) if mine != theirs), min(len(ids), len(other)))
