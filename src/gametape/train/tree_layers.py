"""Attention along a packed tree inside of transformers' own layers.

It is an attention implementation of transformers by the name `IMPLEMENTATION`. Layers hand it the keyword `tree`, the
pass over the rows of one packing; without it, as in ordinary use of the network, attention is transformers' own.
"""

import math
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, cat, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from gametape.core.errors import BadInput
from gametape.train.packing import AttentionPlan
from gametape.train.tree_attention import tree_attention

IMPLEMENTATION = "gametape_tree"
_ATTENTION_LAYERS = frozenset({"full_attention", "sliding_attention"})
_MORE_THAN_A_SOFTMAX = ("softcap", "s_aux", "position_bias")
"""Keywords by which a layer asks for more than the softmax of products."""


@dataclass
class TreePass:
    """One pass of rows through all layers."""

    plan: AttentionPlan
    before: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """By layer: keys and values of the rows of an earlier pass, which these rows follow."""
    kept: dict[int, tuple[Tensor, Tensor]] | None = None
    """Where keys and values of this pass go, without a gradient, for rows that follow."""


def use_tree_attention(network: Any) -> bool:
    """Have a network of transformers attend along trees. False, and nothing changes, where its layers are not attention
    alone or do not leave attention to others."""
    kinds = getattr(network.config.get_text_config(), "layer_types", None) or ()
    replaceable = getattr(network, "_supports_attention_backend", False) and not getattr(network, "_is_stateful", False)
    softcap = getattr(network.config, "attn_logit_softcapping", None)
    if not replaceable or softcap or not _ATTENTION_LAYERS.issuperset(kinds):
        return False
    network.set_attn_implementation(IMPLEMENTATION)
    return True


def attention_window(network: Any) -> float:
    """How many tokens back a row sees in the layers that see least."""
    config = network.config.get_text_config()
    kinds = getattr(config, "layer_types", None)
    windowed = "sliding_attention" in kinds if kinds else True
    return (getattr(config, "sliding_window", None) or math.inf) if windowed else math.inf


def _attend(
    module: nn.Module,
    query_1HND: Tensor,
    key_1GMD: Tensor,
    value_1GMD: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    tree: TreePass | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    if tree is None:
        attended: tuple[Tensor, Tensor | None] = sdpa_attention_forward(
            module, query_1HND, key_1GMD, value_1GMD, attention_mask, scaling=scaling, **options
        )
        return attended
    if any(options.get(name) is not None for name in _MORE_THAN_A_SOFTMAX):
        raise BadInput(f"cannot train with {type(module).__name__}: its attention is more than a softmax of products")
    q_NHD, k_MGD, v_MGD = (heads[0].transpose(0, 1) for heads in (query_1HND, key_1GMD, value_1GMD))
    usual = q_NHD.shape[-1] ** -0.5
    if scaling is not None and not math.isclose(scaling, usual, rel_tol=1e-6):
        q_NHD = q_NHD * (scaling / usual)
    number: int = module.layer_idx
    if tree.kept is not None:
        tree.kept[number] = k_MGD.detach(), v_MGD.detach()
    if earlier := tree.before.get(number):
        k_MGD, v_MGD = cat((earlier[0], k_MGD)), cat((earlier[1], v_MGD))
    return tree_attention(q_NHD, k_MGD, v_MGD, tree.plan)[None], None


AttentionInterface.register(IMPLEMENTATION, _attend)
AttentionMaskInterface.register(IMPLEMENTATION, sdpa_mask)
