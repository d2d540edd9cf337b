"""One decode step of a whole batch as a fixed list of kernel launches over fixed buffers, which a CUDA graph records.

Seven launches a layer: norm; projection to queries, keys and values; attention with rotary embedding and KV append;
output and residual; norm; gate and up; down and residual. Then the logits, the sampling and the bookkeeping, all on the
device: the next step can follow without the host.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from gametape.engines.torch.attention.triton_decode import (
    AttentionTiling,
    RotaryInputs,
    RowState,
    attention_tiling_for,
    decode_attention,
)
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.kv_blocks import BlockPool
from gametape.engines.torch.triton_linear import Tiling, gate, normalise, project
from gametape.engines.torch.triton_sampler import (
    RowProgress,
    RowSampling,
    TiledLogits,
    apply_top_k_top_p,
    compute_logits,
    draw_tokens,
    embed,
)

_ROW_TILE = 128
"""The largest row tile; buffers are padded to a multiple of it."""


@dataclass(frozen=True)
class StepTilings:
    qkv: Tiling
    output: Tiling
    gate: Tiling
    down: Tiling
    head: Tiling


VOCABULARY_TILE = 128


def tilings_for(rows: int) -> StepTilings:
    """Chosen by measurement on an H200.

    Every tile is at least 64 rows high, so that all sizes of batch go through the same matrix instructions and sum in
    the same order: a row's result is the same to the last bit in any batch.
    """
    if rows <= 128:
        narrow = Tiling(64, 16 if rows <= 64 else 32, stages=6)
        return StepTilings(narrow, narrow, narrow, narrow, Tiling(64, VOCABULARY_TILE))
    return StepTilings(
        qkv=Tiling(64, 64, stages=5),
        output=Tiling(64, 64),
        gate=Tiling(64, 64, stages=3),
        down=Tiling(64, 64, depth=128),
        head=Tiling(128, VOCABULARY_TILE, warps=8, stages=3),
    )


@dataclass(frozen=True)
class BufferSizes:
    """The sizes of the buffers: rows, tokens of context per row, steps of a round."""

    rows: int = 512
    context: int = 8192
    steps: int = 32
    stops: int = 8
    """A power of two."""


class DecodeStep:
    """The buffers of a batch and the launches over them. Weights and blocks are those of the decoder and the pool."""

    def __init__(
        self, decoder: Decoder, pool: BlockPool, sizes: BufferSizes, tiling: AttentionTiling | None = None
    ) -> None:
        self.decoder, self.pool, self.sizes = decoder, pool, sizes
        self.tiling = tiling or attention_tiling_for(sizes.rows)
        spec, device, dtype = decoder.spec, decoder.device, decoder.dtype
        padded = -(-sizes.rows // _ROW_TILE) * _ROW_TILE
        tiles = -(-spec.vocabulary // VOCABULARY_TILE)
        attended = spec.heads * spec.head_dim

        def scratch(width: int, of: torch.dtype = dtype) -> Tensor:
            return torch.zeros((padded, width), device=device, dtype=of)

        self._x_NE = scratch(spec.hidden)
        self._hidden_NE = scratch(spec.hidden)
        self._qkv_NX = scratch(attended + 2 * spec.kv_heads * spec.head_dim)
        self._attended_NX = scratch(attended)
        self._gated_NI = scratch(decoder.layers[0].down_EI.shape[1])
        self.tiled_logits = TiledLogits(
            scratch(spec.vocabulary, torch.float32)[: sizes.rows],
            scratch(tiles, torch.float32),
            scratch(tiles, torch.float32),
            VOCABULARY_TILE,
        )
        positions_P = torch.arange(sizes.context, device=device)
        cosines_P1D, sines_P1D = decoder.rotary(positions_P, decoder.dtype)
        half = spec.head_dim // 2
        self._cosines_PD = cosines_P1D[:, 0, half:].contiguous()
        self._sines_PD = sines_P1D[:, 0, half:].contiguous()

        # Packed, so that a round's state is uploaded in few copies; the fields below are views.
        self.integers_FN = torch.zeros((6, sizes.rows), device=device, dtype=torch.int32)
        self.reals_FN = torch.zeros((2, sizes.rows), device=device, dtype=torch.float32)
        self.seeds_N = torch.zeros(sizes.rows, device=device, dtype=torch.int64)
        self.tables_NB = torch.zeros(
            (sizes.rows, -(-sizes.context // pool.block_size)), device=device, dtype=torch.int32
        )
        self.stops_NS = torch.full((sizes.rows, sizes.stops), -1, device=device, dtype=torch.int32)
        tokens_N, lengths_N, live_N, drawn_N, limits_N, top_k_N = self.integers_FN
        self.row_sampling = RowSampling(
            temperatures_N=self.reals_FN[0],
            top_p_N=self.reals_FN[1],
            top_k_N=top_k_N,
            least_N=torch.full((sizes.rows,), -torch.inf, device=device),
            seeds_N=self.seeds_N,
            stops_NS=self.stops_NS,
            limits_N=limits_N,
        )
        self.progress = RowProgress(
            tokens_N=tokens_N,
            lengths_N=lengths_N,
            live_N=live_N,
            drawn_N=drawn_N,
            ids_NS=torch.zeros((sizes.rows, sizes.steps), device=device, dtype=torch.int32),
            logprobs_NS=torch.zeros((sizes.rows, sizes.steps), device=device, dtype=torch.float32),
        )

    def launch(self, rows: int, splits: int) -> None:
        """Read the next token of the first `rows` rows and sample one more; contexts need at most `splits` splits."""
        decoder, spec, tilings = self.decoder, self.decoder.spec, tilings_for(rows)
        x_NE, hidden_NE, qkv_NX = self._x_NE, self._hidden_NE, self._qkv_NX
        attended_NX, gated_NI = self._attended_NX, self._gated_NI
        state = RowState(self.progress.lengths_N[:rows], self.progress.live_N, self.tables_NB)
        embed(self.progress.tokens_N[:rows], decoder.embedding_VE, x_NE)
        for layer, keys, values in zip(decoder.layers, self.pool.keys_LBTGD, self.pool.values_LBTGD, strict=True):
            normalise(x_NE, layer.before_attention_E, spec.eps, hidden_NE, rows)
            project(hidden_NE, layer.qkv_PE, qkv_NX, rows, tilings.qkv, layer.qkv_bias_P)
            rotary = RotaryInputs(self._cosines_PD, self._sines_PD, layer.q_norm_D, layer.k_norm_D, spec.eps)
            decode_attention(qkv_NX, keys, values, state, rotary, attended_NX, splits, self.tiling)
            project(attended_NX, layer.output_EP, x_NE, rows, tilings.output, layer.output_bias_E, x_NE)
            normalise(x_NE, layer.before_mlp_E, spec.eps, hidden_NE, rows)
            gate(hidden_NE, layer.gate_up_PE, gated_NI, rows, tilings.gate, layer.gate_up_bias_P)
            project(gated_NI, layer.down_EI, x_NE, rows, tilings.down, layer.down_bias_E, x_NE)
        normalise(x_NE, decoder.final_norm_E, spec.eps, hidden_NE, rows)
        compute_logits(hidden_NE, decoder.head_VE, self.row_sampling, self.tiled_logits, rows, tilings.head)
        apply_top_k_top_p(self.row_sampling, self.tiled_logits, rows)
        draw_tokens(self.row_sampling, self.tiled_logits, self.progress, rows)
