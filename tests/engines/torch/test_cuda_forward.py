"""The GPU's forward of prompts, against the decoder's own; on a GPU if there is one, else interpreted, in float32."""

from tests.engines.torch.triton_device import DEVICE  # isort: skip

import pytest
import torch

from gametape.engines.torch.attention import reference
from gametape.engines.torch.attention.interface import SequenceSpan
from gametape.engines.torch.cuda_forward import CudaForward
from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.decoder_spec import read_decoder_spec
from gametape.engines.torch.kv_blocks import BlockPool

from .networks import VOCABULARY, network


@pytest.mark.parametrize("family", ["qwen3", "llama-wide"])
def test_prompts_and_pieces_are_read_as_the_decoder_reads_them(family: str) -> None:
    module = network(family).to(DEVICE)
    spec = read_decoder_spec(module.config)
    assert spec is not None
    decoder = Decoder(module, spec)
    own, plain = (BlockPool(spec, 24, 4, DEVICE, torch.float32) for _ in range(2))
    torch.manual_seed(0)
    order = torch.randperm(24).tolist()
    spans = [
        SequenceSpan(0, 9, 0, order[:3]),
        SequenceSpan(9, 1, 5, order[3:5]),
        SequenceSpan(10, 21, 7, order[5:12]),
    ]
    for pool in (own, plain):
        pool.keys_LBTGD.copy_(torch.linspace(-1, 1, own.keys_LBTGD.numel()).view(own.keys_LBTGD.shape))
        pool.values_LBTGD.copy_(torch.linspace(1, -1, own.keys_LBTGD.numel()).view(own.keys_LBTGD.shape))
    ids = torch.randint(VOCABULARY, (31,)).tolist()
    positions_N = torch.tensor([at for span in spans for at in range(span.past, span.past + span.count)], device=DEVICE)
    with torch.inference_mode():
        hidden_NE = CudaForward(decoder, own)(ids, spans)
        expected_NE = decoder.forward(torch.tensor(ids, device=DEVICE), positions_N, reference.plan(plain, spans))
    torch.testing.assert_close(hidden_NE, expected_NE, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(own.keys_LBTGD, plain.keys_LBTGD, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(own.values_LBTGD, plain.values_LBTGD, atol=1e-5, rtol=1e-4)
