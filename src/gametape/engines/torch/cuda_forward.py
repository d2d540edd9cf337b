"""The forward pass of prompts on a GPU: nine launches a layer, four of which are the library's matrix products.

It computes what `Decoder.forward` does, rounded in the same places. Everything that depends on the batch is made on the
host before the first launch and goes to the device in one copy, so the host may be a batch ahead of the device.
"""

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional

from gametape.engines.torch.attention.interface import SequenceSpan
from gametape.engines.torch.attention.triton_prefill import PackedPrompts
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.kv_blocks import BlockPool
from gametape.engines.torch.triton_elementwise import HeadTurn, add_and_normalise, gate_pairs, turn_and_store


class CudaForward:
    """A `PackedForward` over the weights of a decoder and the keys and values of a pool."""

    def __init__(self, decoder: Decoder, pool: BlockPool) -> None:
        self._decoder, self._pool = decoder, pool

    def __call__(self, ids: Sequence[int], spans: Sequence[SequenceSpan]) -> Tensor:
        decoder, pool, spec = self._decoder, self._pool, self._decoder.spec
        prompts = PackedPrompts(pool, ids, spans)
        cosines_N1D, sines_N1D = decoder.rotary(prompts.positions_N, decoder.dtype)
        x_NE = functional.embedding(prompts.ids_N, decoder.embedding_VE)
        more_NE: Tensor | None = None
        for number, layer in enumerate(decoder.layers):
            normed_NE = add_and_normalise(x_NE, more_NE, layer.before_attention_E, spec.eps)
            packed_NX = functional.linear(normed_NE, layer.qkv_PE, layer.qkv_bias_P)
            turn = HeadTurn(cosines_N1D[:, 0], sines_N1D[:, 0], layer.q_norm_D, layer.k_norm_D, spec.eps)
            keys_BTGD, values_BTGD = pool.keys_LBTGD[number], pool.values_LBTGD[number]
            q_NHD = turn_and_store(packed_NX, turn, prompts.places_N, keys_BTGD, values_BTGD, spec.heads)
            attended_NHD = prompts.attend(number, q_NHD)
            more_NE = functional.linear(attended_NHD.flatten(1), layer.output_EP, layer.output_bias_E)
            normed_NE = add_and_normalise(x_NE, more_NE, layer.before_mlp_E, spec.eps)
            gated_NI = gate_pairs(functional.linear(normed_NE, layer.gate_up_PE, layer.gate_up_bias_P))
            more_NE = functional.linear(gated_NI, layer.down_EI, layer.down_bias_E)
        return add_and_normalise(x_NE, more_NE, decoder.final_norm_E, spec.eps)
