"""Drawing on the device, against distributions written out in torch."""

from tests.engines.torch.triton_device import DEVICE  # isort: skip

from collections import Counter

import pytest
import torch
from torch import Tensor

from gametape.engines.torch.triton_linear import Tiling
from gametape.engines.torch.triton_sampler import (
    RowProgress,
    RowSampling,
    TiledLogits,
    apply_top_k_top_p,
    compute_logits,
    draw_tokens,
)

VOCABULARY, TILE, DEPTH = 83, 16, 32


class _Batch:
    def __init__(self, logits_NV: Tensor) -> None:
        """Hidden states and a head that make these logits."""
        rows = len(logits_NV)
        tiles = -(-VOCABULARY // TILE)
        self.rows, self.logits_NV = rows, logits_NV
        self.hidden_NE = torch.zeros(-(-rows // 16) * 16, rows, device=DEVICE)
        self.hidden_NE[:rows, :rows] = torch.eye(rows, device=DEVICE)
        self.head_VE = logits_NV.T.contiguous().to(DEVICE)

        def ints(value: int, kind: torch.dtype = torch.int32) -> Tensor:
            return torch.full((rows,), value, dtype=kind, device=DEVICE)

        self.tiled_logits = TiledLogits(
            *(torch.zeros(rows, width, device=DEVICE) for width in (VOCABULARY, tiles, tiles)), TILE
        )
        self.row_sampling = RowSampling(
            temperatures_N=torch.ones(rows, device=DEVICE),
            top_k_N=ints(0),
            top_p_N=torch.ones(rows, device=DEVICE),
            least_N=torch.zeros(rows, device=DEVICE),
            seeds_N=ints(0, torch.int64),
            stops_NS=torch.full((rows, 2), -1, dtype=torch.int32, device=DEVICE),
            limits_N=ints(4),
        )
        self.progress = RowProgress(
            tokens_N=ints(0),
            lengths_N=ints(9),
            live_N=ints(1),
            drawn_N=ints(0),
            ids_NS=torch.full((rows, 4), -1, dtype=torch.int32, device=DEVICE),
            logprobs_NS=torch.zeros(rows, 4, device=DEVICE),
        )

    def step(self) -> None:
        compute_logits(
            self.hidden_NE, self.head_VE, self.row_sampling, self.tiled_logits, self.rows, Tiling(16, TILE, depth=16)
        )
        apply_top_k_top_p(self.row_sampling, self.tiled_logits, self.rows)
        draw_tokens(self.row_sampling, self.tiled_logits, self.progress, self.rows)


def test_greedy_takes_the_likeliest_with_the_models_own_logprob() -> None:
    torch.manual_seed(0)
    batch = _Batch(torch.randn(5, VOCABULARY) * 3)
    batch.row_sampling.temperatures_N.zero_()
    batch.row_sampling.top_k_N.fill_(1)
    batch.step()
    logp_NV = batch.logits_NV.log_softmax(-1)
    assert batch.progress.ids_NS[:, 0].tolist() == logp_NV.argmax(-1).tolist()
    torch.testing.assert_close(batch.progress.logprobs_NS[:, 0].cpu(), logp_NV.max(-1).values, atol=1e-5, rtol=1e-5)


def _kept(logits_V: Tensor, top_k: int, top_p: float) -> Tensor:
    if top_k:
        logits_V = logits_V.masked_fill(logits_V < logits_V.topk(top_k).values[-1], -torch.inf)
    sorted_V, order_V = logits_V.sort(descending=True)
    cut_V = sorted_V.softmax(-1).cumsum(-1) - sorted_V.softmax(-1) >= top_p
    return logits_V.index_fill(0, order_V[cut_V], -torch.inf)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"), [(1.0, 0, 1.0), (0.6, 0, 1.0), (1.3, 7, 1.0), (1.0, 0, 0.8), (0.9, 12, 0.7)]
)
def test_draws_follow_the_stated_distribution(temperature: float, top_k: int, top_p: float) -> None:
    torch.manual_seed(3)
    rows = 200
    logits_V = torch.randn(VOCABULARY) * 2
    batch = _Batch(logits_V.expand(1, -1))
    single = _kept(logits_V / temperature, top_k, top_p).log_softmax(-1)
    drawn: Counter[int] = Counter()
    batch.row_sampling.temperatures_N.fill_(temperature)
    batch.row_sampling.top_k_N.fill_(top_k)
    batch.row_sampling.top_p_N.fill_(top_p)
    compute_logits(
        batch.hidden_NE, batch.head_VE, batch.row_sampling, batch.tiled_logits, 1, Tiling(16, TILE, depth=16)
    )
    apply_top_k_top_p(batch.row_sampling, batch.tiled_logits, 1)
    for seed in range(rows):
        batch.row_sampling.seeds_N.fill_(seed)
        batch.progress.live_N.fill_(1)
        batch.progress.drawn_N.zero_()
        batch.progress.lengths_N.fill_(9)
        draw_tokens(batch.row_sampling, batch.tiled_logits, batch.progress, 1)
        token = int(batch.progress.ids_NS[0, 0])
        drawn[token] += 1
        assert float(batch.progress.logprobs_NS[0, 0]) == pytest.approx(float(single[token]), abs=1e-4)
    expected_V = single.exp() * rows
    assert all(float(expected_V[token]) > 0 for token in drawn)
    likely_V = expected_V >= 4
    counts_V = torch.tensor([drawn[token] for token in range(VOCABULARY)])
    squared = ((counts_V - expected_V) ** 2 / expected_V)[likely_V].sum()
    degrees = int(likely_V.sum())
    assert float(squared) < degrees + 5 * (2 * degrees) ** 0.5


def test_a_draw_depends_on_seed_and_position_alone() -> None:
    torch.manual_seed(4)
    row_V = torch.randn(VOCABULARY)
    batch = _Batch(row_V.expand(16, -1))
    batch.row_sampling.seeds_N.copy_(torch.arange(16) % 8 + (1 << 40))
    batch.step()
    first = batch.progress.ids_NS[:, 0].tolist()
    assert first[:8] == first[8:]
    assert len(set(first)) > 3
    batch.step()
    assert batch.progress.ids_NS[:8, 1].tolist() != first[:8]


def test_rows_stop_at_a_stop_token_or_their_limit_and_then_stand_still() -> None:
    logits_NV = torch.zeros(3, VOCABULARY)
    logits_NV[0, 5] = logits_NV[1, 6] = logits_NV[2, 7] = 50
    batch = _Batch(logits_NV)
    batch.row_sampling.stops_NS[0, 1] = 5
    batch.row_sampling.limits_N.copy_(torch.tensor([4, 2, 4]))
    for _ in range(4):
        batch.step()
    assert batch.progress.drawn_N.tolist() == [1, 2, 4]
    assert batch.progress.live_N.tolist() == [0, 0, 0]
    assert batch.progress.lengths_N.tolist() == [10, 11, 13]
    assert batch.progress.ids_NS.tolist() == [[5, -1, -1, -1], [6, 6, -1, -1], [7, 7, 7, 7]]


def test_the_same_tokens_are_drawn_as_by_the_plain_sampler() -> None:
    pytest.importorskip("pydantic")
    from gametape.core.messages import Sampling
    from gametape.engines.torch import sampler

    torch.manual_seed(5)
    batch = _Batch(torch.randn(12, VOCABULARY) * 2)
    seeds_N = torch.randint(-(1 << 62), 1 << 62, (12,))
    samplings = [Sampling(temperature=0.5 + row / 10, top_k=row % 3 * 5, top_p=1 - row % 2 * 0.3) for row in range(12)]
    batch.row_sampling.seeds_N.copy_(seeds_N)
    batch.row_sampling.temperatures_N.copy_(torch.tensor([each.temperature for each in samplings]))
    batch.row_sampling.top_k_N.copy_(torch.tensor([each.top_k for each in samplings]))
    batch.row_sampling.top_p_N.copy_(torch.tensor([each.top_p for each in samplings]))
    batch.step()
    plain_N, logprobs_N = sampler.sample_tokens(
        batch.logits_NV, samplings, sampler.uniform(seeds_N, torch.full((12,), 10))
    )
    assert batch.progress.ids_NS[:, 0].tolist() == plain_N.tolist()
    torch.testing.assert_close(batch.progress.logprobs_NS[:, 0].cpu(), logprobs_N, atol=1e-4, rtol=1e-4)
