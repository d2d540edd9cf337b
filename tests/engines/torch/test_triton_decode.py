"""Decode attention over blocks, against attention written out plainly; on a GPU if there is one, else interpreted."""

from tests.engines.torch.triton_device import DEVICE  # isort: skip

import pytest
import torch
from torch import Tensor

from gametape.engines.torch.attention.triton_decode import (
    AttentionTiling,
    RotaryInputs,
    RowState,
    decode_attention,
    splits_for,
)

BLOCK = 8


def _turned(x_HD: Tensor, cosines_D: Tensor, sines_D: Tensor) -> Tensor:
    one_HD, two_HD = x_HD.chunk(2, -1)
    return torch.cat((one_HD * cosines_D - two_HD * sines_D, two_HD * cosines_D + one_HD * sines_D), -1)


def _normed(x_HD: Tensor, gain_D: Tensor | None) -> Tensor:
    if gain_D is None:
        return x_HD
    return x_HD * torch.rsqrt(x_HD.pow(2).mean(-1, keepdim=True) + 1e-6) * gain_D


def _check(
    lengths: list[int], dead: set[int], heads: int, groups: int, width: int, cut: AttentionTiling, normed: bool
) -> None:
    torch.manual_seed(len(lengths) + heads)
    count, per_row = len(lengths), max(lengths) // BLOCK + 1
    order = torch.randperm(count * per_row + 3)
    tables_NB = order[: count * per_row].view(count, per_row).int()
    keys, values = torch.randn(2, len(order), BLOCK, groups, width)
    angles_PD = torch.arange(max(lengths) + 1)[:, None] * torch.rand(width // 2)
    turning = RotaryInputs(angles_PD.cos(), angles_PD.sin())
    if normed:
        turning = RotaryInputs(angles_PD.cos(), angles_PD.sin(), torch.rand(width) + 0.5, torch.rand(width) + 0.5)
    qkv_NX = torch.randn(count, (heads + 2 * groups) * width)
    live_N = torch.tensor([0 if row in dead else 1 for row in range(count)], dtype=torch.int32)
    out_NX = torch.full((count, heads * width), 7.0)

    expected_keys, expected_values, expected_NX = keys.clone(), values.clone(), out_NX.clone()
    for row, length in enumerate(lengths):
        if row in dead:
            continue
        q_HD, k_GD, v_GD = qkv_NX[row].view(-1, width).split([heads, groups, groups])
        q_HD = _turned(_normed(q_HD, turning.query_gain_D), turning.cosines_PD[length], turning.sines_PD[length])
        k_GD = _turned(_normed(k_GD, turning.key_gain_D), turning.cosines_PD[length], turning.sines_PD[length])
        expected_keys[tables_NB[row, length // BLOCK], length % BLOCK] = k_GD
        expected_values[tables_NB[row, length // BLOCK], length % BLOCK] = v_GD
        places = [(int(tables_NB[row, at // BLOCK]), at % BLOCK) for at in range(length + 1)]
        k_TGD = torch.stack([expected_keys[place] for place in places]).repeat_interleave(heads // groups, 1)
        v_TGD = torch.stack([expected_values[place] for place in places]).repeat_interleave(heads // groups, 1)
        scores_HT = torch.einsum("hd,thd->ht", q_HD, k_TGD) * width**-0.5
        expected_NX[row] = torch.einsum("ht,thd->hd", scores_HT.softmax(-1), v_TGD).flatten()

    there = [tensor.to(DEVICE) for tensor in (qkv_NX, keys, values, out_NX)]
    rows = RowState(torch.tensor(lengths, dtype=torch.int32, device=DEVICE), live_N.to(DEVICE), tables_NB.to(DEVICE))
    moved = [None if part is None else part.to(DEVICE) for part in (turning.query_gain_D, turning.key_gain_D)]
    turning = RotaryInputs(turning.cosines_PD.to(DEVICE), turning.sines_PD.to(DEVICE), *moved)
    decode_attention(there[0], there[1], there[2], rows, turning, there[3], splits_for(max(lengths), cut.split), cut)
    torch.testing.assert_close(there[3].cpu(), expected_NX, atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(there[1].cpu(), expected_keys, atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(there[2].cpu(), expected_values, atol=0, rtol=0)


@pytest.mark.parametrize("ahead", [False, True])
def test_rows_of_any_length_in_one_stretch(ahead: bool) -> None:
    _check(
        [0, 1, 7, 8, 15, 16, 17, 40],
        {4},
        heads=9,
        groups=3,
        width=64,
        cut=AttentionTiling(split=64, tile=16, ahead=ahead),
        normed=False,
    )


@pytest.mark.parametrize("ahead", [False, True])
def test_long_rows_are_cut_and_joined(ahead: bool) -> None:
    _check(
        [0, 31, 32, 33, 64, 95, 100],
        {1},
        heads=4,
        groups=2,
        width=32,
        cut=AttentionTiling(split=32, tile=16, ahead=ahead),
        normed=False,
    )


def test_heads_may_be_normalised_and_not_shared() -> None:
    _check([3, 20], set(), heads=2, groups=2, width=16, cut=AttentionTiling(split=16, tile=16), normed=True)


def test_a_row_does_not_depend_on_its_company() -> None:
    torch.manual_seed(0)
    heads, groups, width = 6, 2, 32
    keys, values = torch.randn(2, 16, BLOCK, groups, width, device=DEVICE)
    qkv_NX = torch.randn(3, (heads + 2 * groups) * width, device=DEVICE)
    tables_NB = torch.arange(15, dtype=torch.int32, device=DEVICE).view(3, 5)
    lengths_N = torch.tensor([20, 5, 39], dtype=torch.int32, device=DEVICE)
    angles_PD = torch.rand(40, width // 2, device=DEVICE)
    turning = RotaryInputs(angles_PD.cos(), angles_PD.sin())
    cut = AttentionTiling(split=16, tile=16)

    def attended(rows: list[int]) -> Tensor:
        out_NX = torch.empty(len(rows), heads * width, device=DEVICE)
        state = RowState(lengths_N[rows], torch.ones(len(rows), dtype=torch.int32, device=DEVICE), tables_NB[rows])
        splits = splits_for(int(lengths_N[rows].max()), cut.split)
        decode_attention(qkv_NX[rows], keys.clone(), values.clone(), state, turning, out_NX, splits, cut)
        return out_NX

    together_NX = attended([0, 1, 2])
    for row in range(3):
        assert torch.equal(attended([row])[0], together_NX[row])
