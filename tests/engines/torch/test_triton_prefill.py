"""Attention of prompts over blocks, against attention written plainly; on a GPU if there is one, else interpreted."""

from tests.engines.torch.triton_device import DEVICE  # isort: skip

import pytest
import torch
from torch import Tensor

from gametape.engines.torch.attention import reference
from gametape.engines.torch.attention.interface import SequenceSpan, copy_kv, kv_rows
from gametape.engines.torch.attention.triton_prefill import PackedPrompts
from gametape.engines.torch.decoder_spec import DecoderSpec
from gametape.engines.torch.kv_blocks import BlockPool

BLOCK = 8


def _pool(heads: int, groups: int, width: int, blocks: int, dtype: torch.dtype) -> BlockPool:
    spec = DecoderSpec(1, heads, groups, width, hidden=1, vocabulary=1, eps=1, qk_norm=False)
    pool = BlockPool(spec, blocks, BLOCK, DEVICE, dtype)
    pool.keys_LBTGD.normal_()
    pool.values_LBTGD.normal_()
    return pool


def _inputs(tokens: int, heads: int, groups: int, width: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Slices of one product, as the decoder gives them."""
    packed_NPD = torch.randn(tokens, heads + 2 * groups, width, device=DEVICE, dtype=dtype)
    return packed_NPD[:, :heads], packed_NPD[:, heads : heads + groups], packed_NPD[:, heads + groups :]


def _attended(pool: BlockPool, spans: list[SequenceSpan], q_NHD: Tensor, k_NGD: Tensor, v_NGD: Tensor) -> Tensor:
    copy_kv(pool, 0, kv_rows(pool, spans), k_NGD, v_NGD)
    prompts = PackedPrompts(pool, range(len(q_NHD)), spans)
    assert prompts.places_N.tolist() == kv_rows(pool, spans).tolist()
    assert prompts.ids_N.tolist() == list(range(len(q_NHD)))
    return prompts.attend(0, q_NHD.contiguous())


@pytest.mark.parametrize(
    ("heads", "groups", "width", "dtype", "tolerance"),
    [(9, 3, 64, torch.float32, 2e-5), (4, 4, 16, torch.float32, 2e-5), (9, 3, 64, torch.bfloat16, 2e-2)],
)
def test_prompts_and_pieces_of_them(heads: int, groups: int, width: int, dtype: torch.dtype, tolerance: float) -> None:
    if DEVICE.type == "cpu" and dtype == torch.bfloat16:
        pytest.skip("the interpreter multiplies in float32")
    torch.manual_seed(heads)
    shapes = [(1, 0), (1, 23), (17, 0), (16, 16), (5, 70), (33, 7)]
    order = torch.randperm(64).tolist()
    spans, start = [], 0
    for count, past in shapes:
        spans.append(SequenceSpan(start, count, past, [order.pop() for _ in range(-(-(past + count) // BLOCK))]))
        start += count
    pool = _pool(heads, groups, width, 64, dtype)
    q_NHD, k_NGD, v_NGD = _inputs(start, heads, groups, width, dtype)
    plain_NHD = reference.plan(pool, spans)(0, q_NHD, k_NGD, v_NGD)
    own_NHD = _attended(pool, spans, q_NHD, k_NGD, v_NGD)
    torch.testing.assert_close(own_NHD, plain_NHD, atol=tolerance, rtol=tolerance)


def test_a_token_attends_alike_however_its_prompt_is_cut() -> None:
    torch.manual_seed(0)
    pool = _pool(6, 2, 32, 16, torch.float32)
    blocks = torch.randperm(16).tolist()
    q_NHD, k_NGD, v_NGD = _inputs(50, 6, 2, 32, torch.float32)
    whole_NHD = _attended(pool, [SequenceSpan(0, 50, 0, blocks)], q_NHD, k_NGD, v_NGD)
    at = 0
    for count in (7, 30, 1, 12):
        here = slice(at, at + count)
        piece = _attended(pool, [SequenceSpan(0, count, at, blocks)], q_NHD[here], k_NGD[here], v_NGD[here])
        assert torch.equal(piece, whole_NHD[here])
        at += count
