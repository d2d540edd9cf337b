"""Which rows of a packed tree attend to which, and how that is dealt to few calls of a kernel.

A row sees the rows of its own node up to itself, and all rows of its node's context. Kernels that take spans of any
length get one call for each of the two (`varlen`); others get spans of similar length padded to one (`own`, `context`).
Either is made when it is first asked for. Index arrays are NumPy's until then.
"""

from collections.abc import Iterable, Iterator, Sequence
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

    queries: slice | Tensor
    """Which rows ask; a slice where they lie side by side, as those of `keys` that are seen."""
    keys: slice | Tensor
    query_ends: Tensor
    """0, then where each span ends among the queries, in 32 bits; and below among the keys."""
    key_ends: Tensor
    most_queries: int
    """Of one span."""
    most_keys: int
    causal: bool
    """Each node's own rows; otherwise contexts."""
    learned: bool = True
    """Whether a gradient comes back to what it gives."""
    spans: int = 0
    """How many they are, where all have one number of queries and one of keys; else 0."""


@dataclass(frozen=True)
class _CallRows:
    """What becomes a `VarlenCall`: the lengths of its spans, and their rows."""

    queries: tuple[int, ...]
    keys: tuple[int, ...]
    query_rows: slice | Rows
    key_rows: slice | Rows
    causal: bool
    learned: bool


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
    learned_nodes: int | None = None
    """Behind so many nodes no gradient comes back. Theirs are calls of their own, which have no backward, and in which
    no span keeps those of the others from being of one length."""

    @cached_property
    def rows(self) -> int:
        """How many ask. Rows behind them are padding: they see nothing, and nobody sees them."""
        return sum(self.lengths)

    @cached_property
    def learned_rows(self) -> int:
        return sum(self.lengths[: self.learned_nodes])

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
        """Causal among own rows first; then the contexts, if there are any."""
        parts = [part for nodes in self._node_ranges for part in self._parts(*nodes)]
        ends = [_ends(lengths) for part in parts for lengths in (part.queries, part.keys)]
        listed = [rows for part in parts for rows in (part.query_rows, part.key_rows) if not isinstance(rows, slice)]
        on = iter(on_device([*ends, *listed], self.device))
        pairs = [(next(on).to(torch.int32), next(on).to(torch.int32)) for _ in parts]
        calls = []
        for part, (query_ends, key_ends) in zip(parts, pairs, strict=True):
            queries, keys = (rows if isinstance(rows, slice) else next(on) for rows in (part.query_rows, part.key_rows))
            most = max(part.queries), max(part.keys)
            spans = min(_alike_spans(part.queries), _alike_spans(part.keys))
            calls.append(VarlenCall(queries, keys, query_ends, key_ends, *most, part.causal, part.learned, spans))
        return tuple(sorted(calls, key=lambda call: not call.causal))

    @property
    def _node_ranges(self) -> list[tuple[int, int]]:
        first, count = self.learned_nodes, len(self.lengths)
        return [(0, count)] if first is None else [(0, first), (first, count)]

    def _parts(self, start: int, stop: int) -> Iterator["_CallRows"]:
        """The calls of some nodes: their own rows, and the contexts that they continue."""
        lengths, before, learned = self.lengths[start:stop], sum(self.lengths[:start]), start == 0
        rows = slice(before, before + sum(lengths))
        keys = slice(rows.start + self.first, rows.stop + self.first)
        yield _CallRows(lengths, lengths, rows, keys, True, learned)
        if contexts := [span for span in self.contexts if rows.start <= span.queries_S[0] < rows.stop]:
            asking, seen = [span.queries_S for span in contexts], [span.keys_K for span in contexts]
            rows_of = _side_by_side(asking), _side_by_side(seen)
            yield _CallRows(_sizes(asking), _sizes(seen), *rows_of, False, learned)

    def followed_by(self, other: "AttentionPlan") -> "AttentionPlan":
        """Of these rows and of others behind them, which may see these, and which no gradient comes back to."""
        if not other.rows:
            return self
        contexts = (AttentionSpan(span.queries_S + self.rows, span.keys_K) for span in other.contexts)
        lengths = (*self.lengths, *other.lengths)
        return AttentionPlan(lengths, self.first, (*self.contexts, *contexts), self.device, len(self.lengths))

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
    ends, rows = torch.arange(0, (spans + 1) * length, length, dtype=torch.int32, device=device), slice(spans * length)
    return VarlenCall(rows, rows, ends, ends, length, length, causal, spans=spans)


def _sizes(spans: Sequence[Rows]) -> tuple[int, ...]:
    return tuple(len(rows_S) for rows_S in spans)


def _side_by_side(spans: Sequence[Rows]) -> slice | Rows:
    rows_N = np.concatenate(spans)
    first, stop = int(rows_N[0]), int(rows_N[0]) + len(rows_N)
    return slice(first, stop) if np.array_equal(rows_N, np.arange(first, stop)) else rows_N


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
