"""Attention over many stretches of rows as few batched calls: stretches of like length are padded and go together."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

_SLACK = 16
"""Padding of up to this many rows is cheaper than another call; long stretches may be padded by an eighth."""
_ALIGNED = 8
"""Masks are this many columns or a multiple: what the kernels of every device accept."""


@dataclass(frozen=True)
class Stretch:
    """Query rows that all see the same key rows; with `causal`, the i-th query sees the keys up to the i-th."""

    queries_S: Tensor
    keys_K: Tensor


@dataclass(frozen=True)
class Bucket:
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

    def to(self, device: torch.device | str) -> "Bucket":
        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        return Bucket(
            self.queries_BS.to(device), self.keys_BK.to(device), self.causal, moved(self.real_M), moved(self.hidden_BK)
        )


def bucketed(stretches: Iterable[Stretch], *, causal: bool) -> tuple[Bucket, ...]:
    """Every stretch in one bucket, with stretches whose numbers of queries and of keys are close to its own."""
    ordered = sorted(stretches, key=lambda one: (len(one.keys_K), len(one.queries_S)), reverse=True)
    together: list[list[Stretch]] = []
    for one in ordered:
        if together and _alike(together[-1], one):
            together[-1].append(one)
        else:
            together.append([one])
    return tuple(_bucket(group, causal) for group in together)


def _alike(group: list[Stretch], one: Stretch) -> bool:
    queries = [len(other.queries_S) for other in group] + [len(one.queries_S)]
    return _close(min(queries), max(queries)) and _close(len(one.keys_K), len(group[0].keys_K))


def _close(shorter: int, longer: int) -> bool:
    return longer - shorter <= max(_SLACK, longer // 8)


def _bucket(group: list[Stretch], causal: bool) -> Bucket:
    queries, keys = [len(one.queries_S) for one in group], [len(one.keys_K) for one in group]
    seen_padding = not causal and min(keys) < max(keys)
    wide = -(-max(keys) // _ALIGNED) * _ALIGNED if seen_padding else max(keys)
    return Bucket(
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
