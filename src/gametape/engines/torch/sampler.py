"""Samples tokens for many rows at once, each with its own `Sampling` and its own random numbers."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from gametape.core.messages import Sampling
from gametape.engines.torch.device_copies import upload

_TOP_P_FIRST = 1024
"""How many of the likeliest tokens top p sorts first; if they are not enough, it sorts all."""
_CHUNK = 256


def sample_tokens(logits_MV: Tensor, samplings: Sequence[Sampling], uniform_M: Tensor) -> tuple[Tensor, Tensor]:
    """A token for each row, and its log-probability in the distribution it was sampled from.

    With temperature 0 the likeliest token is taken, and its log-probability is the model's own, at temperature 1.
    """
    logits_MV = shape_logits(logits_MV, samplings)
    logprobs_MV = logits_MV.log_softmax(-1)
    sampled = [at for at, sampling in enumerate(samplings) if sampling.temperature]
    if len(sampled) == len(samplings):
        token_M = _inverse_cdf(logprobs_MV.exp(), uniform_M)
    else:
        token_M = _argmax(logits_MV)
        if sampled:
            sampled_F = upload(sampled, logits_MV.device)
            token_M[sampled_F] = _inverse_cdf(logprobs_MV[sampled_F].exp(), uniform_M[sampled_F])
    return token_M, logprobs_MV.gather(1, token_M[:, None])[:, 0]


def token_logprobs(logits_MV: Tensor, token_M: Tensor, samplings: Sequence[Sampling]) -> Tensor:
    """The log-probability of given tokens in the distributions that `samplings` define."""
    logits_MV = shape_logits(logits_MV, samplings)
    return logits_MV.gather(1, token_M[:, None])[:, 0] - logits_MV.logsumexp(-1)


def shape_logits(logits_MV: Tensor, samplings: Sequence[Sampling]) -> Tensor:
    """Divide by temperature, and set the tokens that top k or top p exclude to minus infinity."""
    temperatures = [sampling.temperature or 1.0 for sampling in samplings]
    if any(temperature != 1.0 for temperature in temperatures):
        logits_MV = logits_MV / upload(temperatures, logits_MV.device)[:, None]
    rows_by_cut: dict[tuple[int, float], list[int]] = {}
    for at, sampling in enumerate(samplings):
        if sampling.temperature and (sampling.top_k or sampling.top_p < 1):
            rows_by_cut.setdefault((sampling.top_k, sampling.top_p), []).append(at)
    for (top_k, top_p), rows in rows_by_cut.items():
        rows_F = upload(rows, logits_MV.device)
        logits_MV = logits_MV.index_copy(0, rows_F, _cut(logits_MV[rows_F], top_k, top_p))
    return logits_MV


def uniform(seeds_M: Tensor, positions_M: Tensor) -> Tensor:
    """Numbers in [0, 1), each from its seed and position alone (SplitMix64), on any device."""
    state_M = seeds_M + (positions_M + 1) * -0x61C8864680B583EB
    state_M = (state_M ^ _shift_right(state_M, 30)) * -0x40A7B892E31B1A47
    state_M = (state_M ^ _shift_right(state_M, 27)) * -0x6B2FB644ECCEEE15
    state_M = state_M ^ _shift_right(state_M, 31)
    return _shift_right(state_M, 11).double() * 2.0**-53


def _shift_right(state_M: Tensor, by: int) -> Tensor:
    """A logical shift to the right."""
    return (state_M >> by) & ((1 << (64 - by)) - 1)


def _in_chunks(values_MV: Tensor, padding: float) -> Tensor:
    """[M, C, _CHUNK], so that two short searches take the place of one over the vocabulary."""
    missing = -values_MV.shape[1] % _CHUNK
    padded_MV = functional.pad(values_MV, (0, missing), value=padding) if missing else values_MV
    return padded_MV.view(len(padded_MV), -1, _CHUNK)


def _argmax(logits_MV: Tensor) -> Tensor:
    """The first of the largest values; maxima without indices are many times faster to find."""
    chunks_MCP = _in_chunks(logits_MV, -torch.inf)
    chunk_M = chunks_MCP.amax(-1).argmax(-1)
    rows_M = torch.arange(len(logits_MV), device=logits_MV.device)
    return chunk_M * _CHUNK + chunks_MCP[rows_M, chunk_M].argmax(-1)


def _inverse_cdf(weight_MV: Tensor, uniform_M: Tensor) -> Tensor:
    """The first id at which the running sum of weights passes the random number."""
    chunks_MCP = _in_chunks(weight_MV, 0.0)
    sums_MC = chunks_MCP.sum(-1).double().cumsum(-1)
    goal_M1 = uniform_M[:, None] * sums_MC[:, -1:]
    chunk_M1 = _first_above(sums_MC, goal_M1)
    rows_M = torch.arange(len(weight_MV), device=weight_MV.device)
    inner_MP = chunks_MCP[rows_M, chunk_M1[:, 0]].cumsum(-1, dtype=torch.float64)
    before_M1 = sums_MC.gather(1, chunk_M1) - inner_MP[:, -1:]
    inner_goal_M1 = (goal_M1 - before_M1).clamp_min(0)  # below 0 by rounding, it would find an id without weight
    return (chunk_M1 * _CHUNK + _first_above(inner_MP, inner_goal_M1))[:, 0]


def _first_above(sums_MX: Tensor, goal_M1: Tensor) -> Tensor:
    """The first index whose sum is above the goal; a goal that rounding has pushed past the end is moved below it."""
    total_M1 = sums_MX[:, -1:]
    below_M1 = torch.nextafter(total_M1, torch.zeros_like(total_M1))
    return torch.searchsorted(sums_MX, torch.minimum(goal_M1, below_M1), right=True)


def _cut(logits_FV: Tensor, top_k: int, top_p: float) -> Tensor:
    """Exclude all but the top k, then what top p excludes."""
    vocabulary = logits_FV.shape[-1]
    if 0 < top_k < vocabulary:
        least_F1 = logits_FV.topk(top_k).values[:, -1:]
        logits_FV = logits_FV.masked_fill(logits_FV < least_F1, -torch.inf)
    if top_p == 1:
        return logits_FV
    lse_F1 = logits_FV.logsumexp(-1, keepdim=True)
    count = min(_TOP_P_FIRST, vocabulary)
    while True:
        top_FK, order_FK = logits_FV.topk(count)
        probability_FK = (top_FK - lse_F1).exp()
        before_FK = probability_FK.cumsum(-1) - probability_FK
        if count == vocabulary or bool((before_FK[:, -1] >= top_p).all()):
            break
        count = vocabulary
    kept_FK = top_FK.masked_fill(before_FK >= top_p, -torch.inf)
    return torch.full_like(logits_FV, -torch.inf).scatter_(1, order_FK, kept_FK)
