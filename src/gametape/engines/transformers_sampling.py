"""Drawing a token from logits."""

import torch
from torch import Tensor

from gametape.core.messages import Sampling


def draw(logits_V: Tensor, sampling: Sampling, generator: torch.Generator) -> tuple[int, float]:
    """A token and its log-probability in the distribution it was drawn from, in float32.

    With temperature 0 the likeliest token is taken, and its log-probability is the model's own, at temperature 1.
    """
    logits_V = logits_V.float()
    if sampling.temperature == 0:
        chosen = int(logits_V.argmax())
        return chosen, float(logits_V.log_softmax(-1)[chosen])
    logp_V = _kept(logits_V / sampling.temperature, sampling).log_softmax(-1)
    chosen = int(torch.multinomial(logp_V.exp(), 1, generator=generator))
    return chosen, float(logp_V[chosen])


def _kept(logits_V: Tensor, sampling: Sampling) -> Tensor:
    """The logits with those that may not be drawn at minus infinity: first all but the top k, then what top p cuts."""
    if 0 < sampling.top_k < len(logits_V):
        least = logits_V.topk(sampling.top_k).values[-1]
        logits_V = logits_V.masked_fill(logits_V < least, -torch.inf)
    if sampling.top_p < 1:
        sorted_V, order_V = logits_V.sort(descending=True)
        probability_V = sorted_V.softmax(-1)
        cut_V = probability_V.cumsum(-1) - probability_V >= sampling.top_p
        logits_V = logits_V.index_fill(0, order_V[cut_V], -torch.inf)
    return logits_V
