"""Which rows of a packed tree attend to which, and how that is dealt to few calls of a kernel.

A row sees the rows of its own node up to itself, and all rows of its node's context. Kernels that take spans of any
length get one call for each of the two (`varlen`); others get spans of similar length padded to one (`own`, `context`).
Either is made when it is first asked for. Index arrays are NumPy's until then.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

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

    queries_S: Tensor | None
    """The rows that ask; None where they are all of the plan's, in order."""
    keys_K: Tensor | None
    """The rows that are asked; None where each query row is its own key row."""
    query_ends: Tensor
    """0, then where each span ends among the queries, in 32 bits; and below among the keys."""
    key_ends: Tensor
    most_queries: int
    """Of one span."""
    most_keys: int


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
        """Causal among the own rows first; then, without causality, the contexts, if there are any."""
        queries = [len(span.queries_S) for span in self.contexts]
        keys = [len(span.keys_K) for span in self.contexts]
        arrays = [_ends(self.lengths), _ends(queries), _ends(keys)]
        arrays += [np.concatenate([span.queries_S for span in self.contexts])] if queries else []
        arrays += [np.concatenate([span.keys_K for span in self.contexts])] if queries else []
        own_ends, query_ends, key_ends, *rows = on_device(arrays, self.device)
        own_ends, query_ends, key_ends = (ends.to(torch.int32) for ends in (own_ends, query_ends, key_ends))
        longest = max(self.lengths)
        calls = [VarlenCall(None, None, own_ends, own_ends, longest, longest)]
        if queries:
            calls.append(VarlenCall(rows[0], rows[1], query_ends, key_ends, max(queries), max(keys)))
        return tuple(calls)

    @cached_property
    def number(self) -> Tensor:
        """By which it is found again where only tensors can be passed: see `plan_of`."""
        number = next(_numbers)
        _plans[number] = self
        return torch.tensor(number)

    def to(self, device: torch.device | str) -> "AttentionPlan":
        return replace(self, device=device)


_numbers = count()
_plans: "WeakValueDictionary[int, AttentionPlan]" = WeakValueDictionary()


def plan_of(number: Tensor) -> AttentionPlan:
    """The plan with this number; somebody keeps it until its backward is over."""
    return _plans[int(number)]


def on_device(arrays: Sequence[npt.NDArray[Any]], device: torch.device | str) -> list[Tensor]:
    """Arrays of one dtype as tensors on a device, in one copy that nobody waits for."""
    flat = torch.from_numpy(np.concatenate([array.ravel() for array in arrays]))
    if torch.device(device).type == "cuda":
        flat = flat.pin_memory().to(device, non_blocking=True)
    pieces = flat.split([array.size for array in arrays])
    return [piece.view(array.shape) for piece, array in zip(pieces, arrays, strict=True)]


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
