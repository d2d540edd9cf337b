"""Drawing tokens for many rows at once, each by its own rules and its own stream of random numbers."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from gametape.core.messages import Sampling

_FIRST_LOOK = 1024
"""How many of the likeliest tokens are sorted before all of them are."""
_PIECE = 256


def sample_tokens(logits_MV: Tensor, samplings: Sequence[Sampling], uniform_M: Tensor) -> tuple[Tensor, Tensor]:
    """A token for each row, and its log-probability in the distribution it was drawn from.

    With temperature 0 the likeliest token is taken, and its log-probability is the model's own, at temperature 1.
    """
    logits_MV = shape_logits(logits_MV, samplings)
    logprobs_MV = logits_MV.log_softmax(-1)
    drawn = [at for at, sampling in enumerate(samplings) if sampling.temperature]
    if len(drawn) == len(samplings):
        chosen_M = _picked(logprobs_MV.exp(), uniform_M)
    else:
        chosen_M = _likeliest(logits_MV)
        if drawn:
            drawn_F = torch.tensor(drawn, device=logits_MV.device)
            chosen_M[drawn_F] = _picked(logprobs_MV[drawn_F].exp(), uniform_M[drawn_F])
    return chosen_M, logprobs_MV.gather(1, chosen_M[:, None])[:, 0]


def token_logprobs(logits_MV: Tensor, chosen_M: Tensor, samplings: Sequence[Sampling]) -> Tensor:
    """The log-probability of given tokens in the distributions they could have been drawn from."""
    logits_MV = shape_logits(logits_MV, samplings)
    return logits_MV.gather(1, chosen_M[:, None])[:, 0] - logits_MV.logsumexp(-1)


def shape_logits(logits_MV: Tensor, samplings: Sequence[Sampling]) -> Tensor:
    """Divided by temperature, and minus infinity for what may not be drawn."""
    heats = [sampling.temperature or 1.0 for sampling in samplings]
    if any(heat != 1.0 for heat in heats):
        logits_MV = logits_MV / torch.tensor(heats, device=logits_MV.device)[:, None]
    cuts: dict[tuple[int, float], list[int]] = {}
    for at, sampling in enumerate(samplings):
        if sampling.temperature and (sampling.top_k or sampling.top_p < 1):
            cuts.setdefault((sampling.top_k, sampling.top_p), []).append(at)
    for (top_k, top_p), rows in cuts.items():
        rows_F = torch.tensor(rows, device=logits_MV.device)
        logits_MV = logits_MV.index_copy(0, rows_F, _cut(logits_MV[rows_F], top_k, top_p))
    return logits_MV


def uniform(seeds_M: Tensor, positions_M: Tensor) -> Tensor:
    """Numbers in [0, 1), each from its seed and position alone (SplitMix64), on any device."""
    state_M = seeds_M + (positions_M + 1) * -0x61C8864680B583EB
    state_M = (state_M ^ _shifted(state_M, 30)) * -0x40A7B892E31B1A47
    state_M = (state_M ^ _shifted(state_M, 27)) * -0x6B2FB644ECCEEE15
    state_M = state_M ^ _shifted(state_M, 31)
    return _shifted(state_M, 11).double() * 2.0**-53


def _shifted(state_M: Tensor, by: int) -> Tensor:
    """To the right, with zeros coming in."""
    return (state_M >> by) & ((1 << (64 - by)) - 1)


def _pieces(values_MV: Tensor, nothing: float) -> Tensor:
    """[M, C, _PIECE], so that two short searches find what one over the vocabulary would."""
    short = -values_MV.shape[1] % _PIECE
    whole_MV = functional.pad(values_MV, (0, short), value=nothing) if short else values_MV
    return whole_MV.view(len(whole_MV), -1, _PIECE)


def _likeliest(logits_MV: Tensor) -> Tensor:
    """The first of the largest: maxima without their places are many times faster to find."""
    pieces_MCP = _pieces(logits_MV, -torch.inf)
    piece_M = pieces_MCP.amax(-1).argmax(-1)
    rows_M = torch.arange(len(logits_MV), device=logits_MV.device)
    return piece_M * _PIECE + pieces_MCP[rows_M, piece_M].argmax(-1)


def _picked(weight_MV: Tensor, uniform_M: Tensor) -> Tensor:
    """Where the running sum of weights, in the order of ids, passes the random number."""
    pieces_MCP = _pieces(weight_MV, 0.0)
    sums_MC = pieces_MCP.sum(-1).double().cumsum(-1)
    goal_M1 = uniform_M[:, None] * sums_MC[:, -1:]
    piece_M1 = _passing(sums_MC, goal_M1)
    rows_M = torch.arange(len(weight_MV), device=weight_MV.device)
    inner_MP = pieces_MCP[rows_M, piece_M1[:, 0]].cumsum(-1, dtype=torch.float64)
    before_M1 = sums_MC.gather(1, piece_M1) - inner_MP[:, -1:]
    inner_goal_M1 = (goal_M1 - before_M1).clamp_min(0)  # below 0 by rounding, it would find what has no weight
    return (piece_M1 * _PIECE + _passing(inner_MP, inner_goal_M1))[:, 0]


def _passing(sums_MX: Tensor, goal_M1: Tensor) -> Tensor:
    """The first place whose sum is above the goal; a goal that rounding has pushed past the end is moved below it."""
    total_M1 = sums_MX[:, -1:]
    below_M1 = torch.nextafter(total_M1, torch.zeros_like(total_M1))
    return torch.searchsorted(sums_MX, torch.minimum(goal_M1, below_M1), right=True)


def _cut(logits_FV: Tensor, top_k: int, top_p: float) -> Tensor:
    """First all but the top k, then what top p cuts."""
    vocabulary = logits_FV.shape[-1]
    if 0 < top_k < vocabulary:
        least_F1 = logits_FV.topk(top_k).values[:, -1:]
        logits_FV = logits_FV.masked_fill(logits_FV < least_F1, -torch.inf)
    if top_p == 1:
        return logits_FV
    lse_F1 = logits_FV.logsumexp(-1, keepdim=True)
    look = min(_FIRST_LOOK, vocabulary)
    while True:
        top_FK, order_FK = logits_FV.topk(look)
        probability_FK = (top_FK - lse_F1).exp()
        before_FK = probability_FK.cumsum(-1) - probability_FK
        if look == vocabulary or bool((before_FK[:, -1] >= top_p).all()):
            break
        look = vocabulary
    kept_FK = top_FK.masked_fill(before_FK >= top_p, -torch.inf)
    return torch.full_like(logits_FV, -torch.inf).scatter_(1, order_FK, kept_FK)
