"""What every kind of attention is given, and what it gives back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gametape.engines.torch.kv_blocks import BlockPool


@dataclass(frozen=True)
class SequenceSpan:
    """The new tokens of one sequence in a packed batch: rows `start` up to `start + count`.

    They stand at positions `past` and after; `blocks` are those of the whole sequence, in order, with room for them.
    Blocks of the past may be shared with other spans; those that are written to are not.
    """

    start: int
    count: int
    past: int
    blocks: Sequence[int]


AttendFn = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""`attend(layer, q_NHD, k_NGD, v_NGD) -> out_NHD`: store the new keys and values, then attend, each token to its own
sequence up to itself. Query head h reads key head h // (H // G); scores are scaled by D ** -0.5."""

AttentionPlanner = Callable[[BlockPool, Sequence[SequenceSpan]], AttendFn]
"""What can be worked out once for all layers of a step is worked out here."""


def kv_rows(pool: BlockPool, spans: Sequence[SequenceSpan]) -> Tensor:
    """Where in a layer, seen as [blocks * block, G, D], each new token's key and value belong."""
    size = pool.block_size
    at = [
        span.blocks[position // size] * size + position % size
        for span in spans
        for position in range(span.past, span.past + span.count)
    ]
    return torch.tensor(at, device=pool.keys_LBTGD.device)
