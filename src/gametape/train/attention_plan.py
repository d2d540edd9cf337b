"""Which rows of a packed tree attend to which, and how that is dealt to few calls of a kernel.

A row sees the rows of its own node up to itself, and all rows of its node's context. Kernels that take spans of any
length get one call for each of the two (`varlen`); others get spans of similar length padded to one (`own`, `context`).
Either is made when it is first asked for. Index arrays are NumPy's until then.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Rows: TypeAlias = npt.NDArray[np.int64]
_SLACK = 16
"""Padding of up to this many rows is cheaper than another call; long spans may be padded by an eighth."""
_ALIGNED = 8
"""Masks have a multiple of this many columns, which the kernels of every device accept."""


@dataclass(frozen=True)
class AttentionSpan:
    """Query rows that all see the same key rows; in a causal call the i-th query sees the keys up to the i-th."""

    queries_S: Rows
    keys_K: Rows


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


@dataclass(frozen=True)
class VarlenCall:
    """Spans of any length for one call, end to end."""

    query_ends: Tensor
    """0, then where each span ends among the queries, in 32 bits; and below among the keys."""
    key_ends: Tensor
    most_queries: int
    """Of one span."""
    most_keys: int
    causal: bool
    """Each node's own rows, all of them in order; otherwise contexts, with their rows here:"""
    queries_S: Tensor
    keys_K: Tensor
    spans: int = 0
    """How many they are, where all have one number of queries and one of keys; else 0."""


@dataclass(frozen=True, eq=False)
class AttentionPlan:
    """Attention of rows that lie end to end, a node after the other."""

    lengths: tuple[int, ...]
    """Of the nodes, in the order of their rows."""
    first: int
    """Queries count from zero; the key row of the first is this one."""
    contexts: tuple[AttentionSpan, ...]
    """Nodes that continue the same tokens share a span: the prompt of a group is one for all its rollouts."""
    device: torch.device | str = "cpu"

    @cached_property
    def rows(self) -> int:
        """How many ask. Rows behind them are padding: they see nothing, and nobody sees them."""
        return sum(self.lengths)

    @cached_property
    def own(self) -> tuple[AttentionBucket, ...]:
        ends = np.cumsum(self.lengths)
        rows = [np.arange(end - length, end) for end, length in zip(ends, self.lengths, strict=True)]
        return make_buckets([AttentionSpan(own, own + self.first) for own in rows], causal=True, device=self.device)

    @cached_property
    def context(self) -> tuple[AttentionBucket, ...]:
        return make_buckets(self.contexts, causal=False, device=self.device)

    @cached_property
    def varlen(self) -> tuple[VarlenCall, ...]:
        """Causal among the own rows first; then the contexts, if there are any."""
        queries, keys = ([len(one) for one in rows] for rows in self._context_rows)
        columns = [np.concatenate([np.arange(0), *rows]) for rows in self._context_rows]
        arrays = [_ends(self.lengths), _ends(queries), _ends(keys), *columns]
        own_ends, query_ends, key_ends, queries_S, keys_K = on_device(arrays, self.device)
        own_ends, query_ends, key_ends = (ends.to(torch.int32) for ends in (own_ends, query_ends, key_ends))
        longest = max(self.lengths)
        own = VarlenCall(
            own_ends, own_ends, longest, longest, True, queries_S[:0], keys_K[:0], _alike_spans(self.lengths)
        )
        if not queries:
            return (own,)
        spans = min(_alike_spans(queries), _alike_spans(keys))
        return own, VarlenCall(query_ends, key_ends, max(queries), max(keys), False, queries_S, keys_K, spans)

    @property
    def _context_rows(self) -> tuple[list[Rows], list[Rows]]:
        return [span.queries_S for span in self.contexts], [span.keys_K for span in self.contexts]

    def to(self, device: torch.device | str) -> "AttentionPlan":
        return replace(self, device=device)


def on_device(arrays: Sequence[npt.NDArray[Any]], device: torch.device | str) -> list[Tensor]:
    """Arrays of one dtype as tensors on a device, in one copy that nobody waits for."""
    flat = torch.from_numpy(np.concatenate([array.ravel() for array in arrays]))
    if torch.device(device).type == "cuda":
        flat = flat.pin_memory().to(device, non_blocking=True)
    pieces = flat.split([array.size for array in arrays])
    return [piece.view(array.shape) for piece, array in zip(pieces, arrays, strict=True)]


def equal_spans(spans: int, length: int, causal: bool, device: torch.device | str) -> VarlenCall:
    """So many spans, each with as many keys as queries, whose rows are all there are."""
    ends = torch.arange(0, (spans + 1) * length, length, dtype=torch.int32, device=device)
    none = ends[:0].long()
    return VarlenCall(ends, ends, length, length, causal, none, none, spans)


def _alike_spans(lengths: Sequence[int]) -> int:
    return len(lengths) if len(set(lengths)) == 1 else 0


def _ends(lengths: Sequence[int]) -> Rows:
    return np.cumsum([0, *lengths], dtype=np.int64)


def make_buckets(
    spans: Iterable[AttentionSpan], *, causal: bool, device: torch.device | str = "cpu"
) -> tuple[AttentionBucket, ...]:
    """Each span in one bucket, with spans of similar numbers of queries and of keys."""
    ordered = sorted(spans, key=lambda span: (len(span.keys_K), len(span.queries_S)), reverse=True)
    groups: list[list[AttentionSpan]] = []
    for span in ordered:
        if groups and _alike(groups[-1], span):
            groups[-1].append(span)
        else:
            groups.append([span])
    return tuple(_bucket(group, causal, device) for group in groups)


def _alike(group: list[AttentionSpan], span: AttentionSpan) -> bool:
    """The first of a group has the most keys."""
    queries = [len(member.queries_S) for member in group] + [len(span.queries_S)]
    return _close(min(queries), max(queries)) and _close(len(span.keys_K), len(group[0].keys_K))


def _close(shorter: int, longer: int) -> bool:
    return longer - shorter <= max(_SLACK, longer // 8)


def _bucket(group: list[AttentionSpan], causal: bool, device: torch.device | str) -> AttentionBucket:
    queries, keys = [len(span.queries_S) for span in group], [len(span.keys_K) for span in group]
    seen_padding = not causal and min(keys) < max(keys)
    wide = -(-max(keys) // _ALIGNED) * _ALIGNED if seen_padding else max(keys)
    queries_BS, keys_BK = on_device(
        [
            np.stack([_padded(span.queries_S, max(queries)) for span in group]),
            np.stack([_padded(span.keys_K, wide) for span in group]),
        ],
        device,
    )
    real = np.flatnonzero(~_beyond(queries, max(queries)))
    return AttentionBucket(
        queries_BS,
        keys_BK,
        causal,
        real_M=None if min(queries) == max(queries) else torch.from_numpy(real).to(device),
        hidden_BK=torch.from_numpy(_beyond(keys, wide)).to(device) if seen_padding else None,
    )


def _padded(rows: Rows, length: int) -> Rows:
    return np.concatenate((rows, np.full(length - len(rows), rows[-1])))


def _beyond(lengths: list[int], width: int) -> npt.NDArray[np.bool_]:
    beyond: npt.NDArray[np.bool_] = np.arange(width) >= np.array(lengths)[:, None]
    return beyond
