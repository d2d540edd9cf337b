"""The interface of the attention implementations: `plan` prepares a step, `attend` runs one layer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gametape.engines.torch.kv_blocks import BlockPool


@dataclass(frozen=True)
class SequenceSpan:
    """The new tokens of one sequence in a packed batch: rows `start` up to `start + count`.

    Their positions begin at `past`; `blocks` are those of the whole sequence, in order, with room for the new tokens.
    Blocks of the past may be shared with other spans; those that are written to are not.
    """

    start: int
    count: int
    past: int
    blocks: Sequence[int]


AttendFn = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""`attend(layer, q_NHD, k_NGD, v_NGD) -> out_NHD`: store the new keys and values, then attend, each token to its own
sequence up to itself. Query head h reads key head h // (H // G); scores are scaled by D ** -0.5."""

PackedForward = Callable[[Sequence[int], Sequence[SequenceSpan]], Tensor]
"""`forward(ids, spans) -> hidden_NE`: store the keys and values of a packed batch, and return its states after the
last norm."""

AttentionPlanner = Callable[[BlockPool, Sequence[SequenceSpan]], AttendFn]
"""Computes once what all layers of a step need, and returns the function that attends."""


def kv_rows(pool: BlockPool, spans: Sequence[SequenceSpan]) -> Tensor:
    """The row of each new token's key and value in a layer seen as [blocks * block_size, G, D]."""
    size = pool.block_size
    at = [
        span.blocks[position // size] * size + position % size
        for span in spans
        for position in range(span.past, span.past + span.count)
    ]
    return torch.tensor(at, device=pool.keys_LBTGD.device)


def copy_kv(pool: BlockPool, layer: int, rows_N: Tensor, k_NGD: Tensor, v_NGD: Tensor) -> None:
    """Store keys and values in these rows of a layer."""
    pool.keys_LBTGD[layer].view(-1, *k_NGD.shape[1:]).index_copy_(0, rows_N, k_NGD)
    pool.values_LBTGD[layer].view(-1, *v_NGD.shape[1:]).index_copy_(0, rows_N, v_NGD)
