"""Products with what surrounds them, against the same written out in torch."""

from tests.engines.torch.triton_device import DEVICE  # isort: skip

import pytest
import torch
from torch.nn import functional

from gametape.engines.torch.triton_linear import Parts, Tiling, gate, normalise, project, project_parts

TILING = Tiling(16, 32, depth=32)


@pytest.mark.parametrize(("rows", "columns", "depth"), [(5, 48, 64), (16, 32, 40), (20, 33, 96)])
def test_bias_and_residual_around_a_product(rows: int, columns: int, depth: int) -> None:
    torch.manual_seed(rows)
    x_NE = torch.randn(32, depth, device=DEVICE)
    weight_FE, bias_F = torch.randn(columns, depth, device=DEVICE), torch.randn(columns, device=DEVICE)
    residual_NF = torch.randn(32, columns, device=DEVICE)
    out_NF = residual_NF.clone()
    project(x_NE, weight_FE, out_NF, rows, TILING, bias_F, out_NF)
    expected_NF = residual_NF + functional.linear(x_NE, weight_FE, bias_F)
    torch.testing.assert_close(out_NF[:rows], expected_NF[:rows], atol=1e-4, rtol=1e-4)

    project(x_NE, weight_FE, out_NF, rows, TILING)
    torch.testing.assert_close(out_NF[:rows], functional.linear(x_NE, weight_FE)[:rows], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("biased", [False, True])
def test_a_gated_pair(biased: bool) -> None:
    torch.manual_seed(1)
    x_NE, weight_FE = torch.randn(16, 64, device=DEVICE), torch.randn(2 * 40, 64, device=DEVICE)
    out_NI = torch.empty(16, 40, device=DEVICE)
    bias_F = torch.randn(80, device=DEVICE) if biased else None
    gate(x_NE, weight_FE, out_NI, 16, TILING, bias_F)
    one_NI, two_NI = functional.linear(x_NE, weight_FE, bias_F).chunk(2, -1)
    torch.testing.assert_close(out_NI, functional.silu(one_NI) * two_NI, atol=1e-4, rtol=1e-4)


def test_a_norm() -> None:
    x_NE, gain_E, out_NE = (
        torch.randn(5, 48, device=DEVICE),
        torch.rand(48, device=DEVICE),
        torch.zeros(5, 48, device=DEVICE),
    )
    normalise(x_NE, gain_E, 1e-5, out_NE, 4)
    torch.testing.assert_close(out_NE[:4], functional.rms_norm(x_NE, (48,), gain_E, 1e-5)[:4], atol=1e-5, rtol=1e-5)
    assert not out_NE[4].any()


@pytest.mark.parametrize(("parts", "biased"), [(2, True), (3, False)])
def test_a_product_in_parts_is_added_by_the_norm_behind_it(parts: int, biased: bool) -> None:
    torch.manual_seed(parts)
    x_NE, weight_FE = torch.randn(16, 300, device=DEVICE), torch.randn(48, 300, device=DEVICE)
    bias_F = torch.randn(48, device=DEVICE) if biased else None
    residual_NF, gain_F = torch.randn(16, 48, device=DEVICE), torch.rand(48, device=DEVICE)
    sums_SNF, out_NF = torch.full((parts, 16, 48), torch.nan, device=DEVICE), torch.zeros(16, 48, device=DEVICE)
    expected_NF = residual_NF + functional.linear(x_NE, weight_FE, bias_F)
    project_parts(x_NE, weight_FE, sums_SNF, 11, TILING)
    assert not sums_SNF[:, :11].isnan().any()
    normalise(residual_NF, gain_F, 1e-5, out_NF, 11, Parts(sums_SNF, bias_F))
    torch.testing.assert_close(residual_NF[:11], expected_NF[:11], atol=1e-4, rtol=1e-4)
    normed_NF = functional.rms_norm(expected_NF, (48,), gain_F, 1e-5)
    torch.testing.assert_close(out_NF[:11], normed_NF[:11], atol=1e-4, rtol=1e-4)
