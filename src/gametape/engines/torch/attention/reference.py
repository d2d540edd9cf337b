"""The reference implementation of attention: gather, mask, softmax. Slow, for any device, used to test the others."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gametape.engines.torch.attention.interface import AttendFn, SequenceSpan, copy_kv, kv_rows
from gametape.engines.torch.kv_blocks import BlockPool


def plan(pool: BlockPool, spans: Sequence[SequenceSpan]) -> AttendFn:
    rows_N = kv_rows(pool, spans)
    device = rows_N.device
    tables = [torch.tensor(list(span.blocks), device=device) for span in spans]

    def attend(layer: int, q_NHD: Tensor, k_NGD: Tensor, v_NGD: Tensor) -> Tensor:
        keys_BTGD, values_BTGD = pool.keys_LBTGD[layer], pool.values_LBTGD[layer]
        copy_kv(pool, layer, rows_N, k_NGD, v_NGD)
        repeats = q_NHD.shape[1] // k_NGD.shape[1]
        out_NHD = torch.empty_like(q_NHD)
        for span, table in zip(spans, tables, strict=True):
            length = span.past + span.count
            k_SHD = keys_BTGD[table].flatten(0, 1)[:length].repeat_interleave(repeats, 1).float()
            v_SHD = values_BTGD[table].flatten(0, 1)[:length].repeat_interleave(repeats, 1).float()
            q_CHD = q_NHD[span.start : span.start + span.count].float() * q_NHD.shape[-1] ** -0.5
            scores_HCS = torch.einsum("chd,shd->hcs", q_CHD, k_SHD)
            future_CS = torch.ones(span.count, length, dtype=torch.bool, device=device).triu(span.past + 1)
            weights_HCS = scores_HCS.masked_fill(future_CS, -torch.inf).softmax(-1)
            out_CHD = torch.einsum("hcs,shd->chd", weights_HCS, v_SHD)
            out_NHD[span.start : span.start + span.count] = out_CHD.to(q_NHD.dtype)
        return out_NHD

    return attend
