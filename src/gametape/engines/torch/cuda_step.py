"""One decode step of a whole batch as a fixed list of kernel launches over fixed buffers, which a CUDA graph records.

Seven launches a layer: norm; projection to queries, keys and values; attention with rotary embedding and KV append;
output; norm; gate and up; down. Output and down add to the residual stream themselves, or leave parts of a sum that the
norm behind them adds. Then the logits, the sampling and the bookkeeping, all on the
device: the next step can follow without the host.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from gametape.engines.torch.attention.triton_decode import (
    AttentionTiling,
    RotaryInputs,
    RowState,
    attention_tilings,
    decode_attention,
)
from gametape.engines.torch.decoder import Decoder, LayerWeights
from gametape.engines.torch.kv_blocks import BlockPool
from gametape.engines.torch.triton_linear import Parts, Tiling, gate, normalise, project, project_parts
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
class SumOrder:
    """What decides in which order a row is summed. It is the same for all batches of an engine, so that a row's result
    is the same to the last bit in any of them."""

    attention: AttentionTiling
    output_parts: int = 1
    down_parts: int = 1


@dataclass(frozen=True)
class StepTilings:
    """The tilings of the products of a step.

    Every tile is at least 64 rows high, so that all sizes of batch go through the same matrix instructions and sum in
    the same order: a tiling shows in the time alone.
    """

    qkv: Tiling
    output: Tiling
    gate: Tiling
    down: Tiling
    head: Tiling


VOCABULARY_TILE = 128


def usual_tilings(rows: int) -> StepTilings:
    """Good ones for small networks on an H200, for where nothing is measured."""
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

    def __init__(self, decoder: Decoder, pool: BlockPool, sizes: BufferSizes, order: SumOrder | None = None) -> None:
        self.decoder, self.pool, self.sizes = decoder, pool, sizes
        self._tilings: dict[int, StepTilings] = {}
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
        self.use_order(order or SumOrder(attention_tilings(sizes.rows, spec.kv_heads, spec.head_dim)[0]))
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

    def use_order(self, order: SumOrder) -> None:
        """Before anything is recorded."""
        shape = self._x_NE.shape
        self.order = order
        self._output_SNE, self._down_SNE = (
            torch.zeros((parts, *shape), device=self._x_NE.device) if parts > 1 else None
            for parts in (order.output_parts, order.down_parts)
        )

    def use_tilings(self, rows: int, tilings: StepTilings) -> None:
        """For batches of `rows`, before they are recorded."""
        self._tilings[rows] = tilings

    def launch(self, rows: int, splits: int) -> None:
        """Read the next token of the first `rows` rows and sample one more; contexts need at most `splits` splits."""
        tilings = self._tilings.get(rows) or usual_tilings(rows)
        embed(self.progress.tokens_N[:rows], self.decoder.embedding_VE, self._x_NE)
        more: Parts | None = None
        for number, layer in enumerate(self.decoder.layers):
            self.normalise(layer.before_attention_E, rows, more)
            self.project_qkv(layer, rows, tilings.qkv)
            self.attend(number, layer, rows, splits, self.order.attention)
            more = self.project_output(layer, rows, tilings.output)
            self.normalise(layer.before_mlp_E, rows, more)
            self.gate(layer, rows, tilings.gate)
            more = self.project_down(layer, rows, tilings.down)
        self.normalise(self.decoder.final_norm_E, rows, more)
        self.compute_logits(rows, tilings.head)
        apply_top_k_top_p(self.row_sampling, self.tiled_logits, rows)
        draw_tokens(self.row_sampling, self.tiled_logits, self.progress, rows)

    def normalise(self, gain_E: Tensor, rows: int, more: Parts | None) -> None:
        normalise(self._x_NE, gain_E, self.decoder.spec.eps, self._hidden_NE, rows, more)

    def project_qkv(self, layer: LayerWeights, rows: int, tiling: Tiling) -> None:
        project(self._hidden_NE, layer.qkv_PE, self._qkv_NX, rows, tiling, layer.qkv_bias_P)

    def attend(self, number: int, layer: LayerWeights, rows: int, splits: int, tiling: AttentionTiling) -> None:
        state = RowState(self.progress.lengths_N[:rows], self.progress.live_N, self.tables_NB)
        eps = self.decoder.spec.eps
        rotary = RotaryInputs(self._cosines_PD, self._sines_PD, layer.q_norm_D, layer.k_norm_D, eps)
        keys_BTGD, values_BTGD = self.pool.keys_LBTGD[number], self.pool.values_LBTGD[number]
        decode_attention(self._qkv_NX, keys_BTGD, values_BTGD, state, rotary, self._attended_NX, splits, tiling)

    def project_output(self, layer: LayerWeights, rows: int, tiling: Tiling) -> Parts | None:
        """Adds to the residual stream, or returns what the next norm is to add."""
        bias_E = layer.output_bias_E
        return self._add(self._attended_NX, layer.output_EP, bias_E, self._output_SNE, rows, tiling)

    def gate(self, layer: LayerWeights, rows: int, tiling: Tiling) -> None:
        gate(self._hidden_NE, layer.gate_up_PE, self._gated_NI, rows, tiling, layer.gate_up_bias_P)

    def project_down(self, layer: LayerWeights, rows: int, tiling: Tiling) -> Parts | None:
        """As `project_output`."""
        return self._add(self._gated_NI, layer.down_EI, layer.down_bias_E, self._down_SNE, rows, tiling)

    def compute_logits(self, rows: int, tiling: Tiling) -> None:
        compute_logits(self._hidden_NE, self.decoder.head_VE, self.row_sampling, self.tiled_logits, rows, tiling)

    def _add(
        self,
        in_NX: Tensor,
        weight_EX: Tensor,
        bias_E: Tensor | None,
        sums_SNE: Tensor | None,
        rows: int,
        tiling: Tiling,
    ) -> Parts | None:
        if sums_SNE is None:
            project(in_NX, weight_EX, self._x_NE, rows, tiling, bias_E, self._x_NE)
            return None
        project_parts(in_NX, weight_EX, sums_SNE, rows, tiling)
        return Parts(sums_SNE, bias_E)
