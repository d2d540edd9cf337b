"""Mixtures of experts: the loss that keeps their experts evenly used, and how evenly they are.

For each layer it is `experts * sum over experts of (share of choices x mean probability)`, as in Switch Transformers,
with the factor of transformers' own loss and averaged over layers. Shares are those of the whole step, however many
parts and ranks it is computed in: with the shares of each part alone, every part would have to be even by itself. Rows
are those that predict a chosen token, once for each: what samples share is in as many parts as these are split over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class ExpertChoices:
    """How often each expert of each layer was chosen, by how many rows."""

    chosen_LE: Tensor
    rows: int

    @classmethod
    def of_routers(cls, router_logits: Sequence[Tensor], top_k: int) -> "ExpertChoices":
        counts = []
        for logits_NE in router_logits:
            best_NK = logits_NE.detach().topk(top_k, dim=-1).indices
            counts.append(best_NK.flatten().bincount(minlength=logits_NE.shape[-1]))
        return cls(torch.stack(counts).double().cpu(), len(router_logits[0]))

    def __add__(self, other: "ExpertChoices") -> "ExpertChoices":
        return ExpertChoices(self.chosen_LE + other.chosen_LE, self.rows + other.rows)

    def to_log(self) -> dict[str, float]:
        """Loads as multiples of an even one, over all layers, and how many experts nobody chose."""
        load_LE = self.chosen_LE * self.chosen_LE.shape[1] / self.chosen_LE.sum(1, keepdim=True)
        return {
            "load_most": float(load_LE.max()),
            "load_least": float(load_LE.min()),
            "unused": int((self.chosen_LE == 0).sum()),
        }


def balance_weight(config: Any) -> float:
    """What the network's own configuration says."""
    return float(getattr(config.get_text_config(), "router_aux_loss_coef", None) or 0.0)


def balance_loss(router_logits: Sequence[Tensor], step: ExpertChoices) -> Tensor:
    """The share of these rows in the loss of the step."""
    losses = []
    for logits_NE, chosen_E in zip(router_logits, step.chosen_LE, strict=True):
        wide = torch.promote_types(logits_NE.dtype, torch.float32)
        probs_E = logits_NE.softmax(-1, dtype=wide).sum(0) / step.rows
        losses.append(logits_NE.shape[-1] * (chosen_E.to(probs_E) / step.rows * probs_E).sum())
    return torch.stack(losses).mean()
