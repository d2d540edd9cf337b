"""Attention along a packed tree inside of transformers' own layers.

It is an attention implementation of transformers by the name `IMPLEMENTATION`. Layers hand it the keyword `tree`, the
pass over the rows of one packing; without it, as in ordinary use of the network, attention is transformers' own.
In compiled layers it is one operator, so that a layer is one graph.
"""

import math
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from torch import Tensor, cat, compiler, float32, library, nn, promote_types, tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from gametape.core.errors import BadInput
from gametape.train.attention_plan import AttentionPlan
from gametape.train.tree_attention import attend, attend_backward, tree_attention

IMPLEMENTATION = "gametape_tree"
_ATTENTION_LAYERS = frozenset({"full_attention", "sliding_attention"})
_MORE_THAN_A_SOFTMAX = ("softcap", "s_aux", "position_bias")
"""Keywords by which a layer asks for more than the softmax of products."""


@dataclass(eq=False)
class TreePass:
    """One pass of rows through all layers."""

    plan: AttentionPlan
    before: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """By layer: keys and values of the rows of an earlier pass, which these rows follow."""
    kept: dict[int, tuple[Tensor, Tensor]] | None = None
    """Where keys and values of this pass go, without a gradient, for rows that follow."""
    number: Tensor = field(init=False)
    """By which compiled layers find it, which pass tensors alone."""

    def __post_init__(self) -> None:
        number = next(_numbers)
        _passes[number], _plans[number] = self, self.plan
        self.number = tensor(number)

    def keys_and_values(self, layer: int, k_NGD: Tensor, v_NGD: Tensor) -> tuple[Tensor, Tensor]:
        """All that this layer's rows see, whose own these are."""
        if self.kept is not None:
            rows = self.plan.rows
            self.kept[layer] = k_NGD[:rows].detach().clone(), v_NGD[:rows].detach().clone()
        return self.after_earlier(layer, k_NGD, v_NGD)

    def after_earlier(self, layer: int, k_NGD: Tensor, v_NGD: Tensor) -> tuple[Tensor, Tensor]:
        """Behind those of the earlier pass."""
        if earlier := self.before.get(layer):
            return cat((earlier[0], k_NGD)), cat((earlier[1], v_NGD))
        return k_NGD, v_NGD


_numbers = count()
_passes: WeakValueDictionary[int, TreePass] = WeakValueDictionary()
_plans: WeakValueDictionary[int, AttentionPlan] = WeakValueDictionary()
"""Of each pass. The backward asks for no more, and what a pass gave out keeps its plan until then."""


@library.custom_op("gametape::tree_attention", mutates_args=())  # type: ignore[untyped-decorator]
def _compiled_attention(
    q_NHD: Tensor, k_NGD: Tensor, v_NGD: Tensor, number: Tensor, layer: Tensor
) -> tuple[Tensor, Tensor]:
    """What compiled layers call. The numbers of pass and layer are tensors, because a layer would be compiled anew for
    every other number."""
    tree = _passes[int(number)]
    out_NHD, lse_HN = attend(q_NHD, *tree.keys_and_values(int(layer), k_NGD, v_NGD), tree.plan)
    return out_NHD.contiguous(), lse_HN.contiguous()


@_compiled_attention.register_fake  # type: ignore[untyped-decorator]
def _(q_NHD: Tensor, k_NGD: Tensor, v_NGD: Tensor, number: Tensor, layer: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG001
    wide = promote_types(q_NHD.dtype, float32)
    return q_NHD.new_empty(q_NHD.shape), q_NHD.new_empty((q_NHD.shape[1], q_NHD.shape[0]), dtype=wide)


@library.custom_op("gametape::tree_attention_backward", mutates_args=())  # type: ignore[untyped-decorator]
def _compiled_backward(
    grad_NHD: Tensor,
    q_NHD: Tensor,
    k_NGD: Tensor,
    v_NGD: Tensor,
    out_NHD: Tensor,
    lse_HN: Tensor,
    number: Tensor,
    layer: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    plan, tree = _plans[int(number)], _passes.get(int(number))
    k_MGD, v_MGD = tree.after_earlier(int(layer), k_NGD, v_NGD) if plan.first and tree else (k_NGD, v_NGD)
    grads = attend_backward(grad_NHD, q_NHD, k_MGD, v_MGD, out_NHD, lse_HN, plan)
    own = slice(len(k_MGD) - len(k_NGD), None)
    return grads[0].contiguous(), grads[1][own].contiguous(), grads[2][own].contiguous()


@_compiled_backward.register_fake  # type: ignore[untyped-decorator]
def _(
    grad_NHD: Tensor,  # noqa: ARG001
    q_NHD: Tensor,
    k_NGD: Tensor,
    v_NGD: Tensor,
    out_NHD: Tensor,  # noqa: ARG001
    lse_HN: Tensor,  # noqa: ARG001
    number: Tensor,  # noqa: ARG001
    layer: Tensor,  # noqa: ARG001
) -> tuple[Tensor, Tensor, Tensor]:
    return q_NHD.new_empty(q_NHD.shape), k_NGD.new_empty(k_NGD.shape), v_NGD.new_empty(v_NGD.shape)


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
    q_NHD, k_NGD, v_NGD, number, layer = inputs
    ctx.save_for_backward(q_NHD, k_NGD, v_NGD, *output, number, layer)


def _go_back(ctx: Any, grad_NHD: Tensor, _grad_lse_HN: Tensor) -> tuple[Tensor | None, ...]:
    return *_compiled_backward(grad_NHD, *ctx.saved_tensors), None, None


_compiled_attention.register_autograd(_go_back, setup_context=_keep)


def use_tree_attention(network: Any) -> bool:
    """Have a network of transformers attend along trees. False, and nothing changes, where its layers are not attention
    alone or do not leave attention to others."""
    kinds = getattr(network.config.get_text_config(), "layer_types", None) or ()
    replaceable = getattr(network, "_supports_attention_backend", False) and not getattr(network, "_is_stateful", False)
    softcap = getattr(network.config, "attn_logit_softcapping", None)
    if not replaceable or softcap or not _ATTENTION_LAYERS.issuperset(kinds):
        return False
    network.set_attn_implementation(IMPLEMENTATION)
    for module in network.modules():
        if isinstance(number := getattr(module, "layer_idx", None), int):
            module.tree_layer = tensor(number)
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
    if compiler.is_compiling():
        return _compiled_attention(q_NHD, k_MGD, v_MGD, tree.number, module.tree_layer)[0][None], None
    k_MGD, v_MGD = tree.keys_and_values(int(module.layer_idx), k_MGD, v_MGD)
    return tree_attention(q_NHD, k_MGD, v_MGD, tree.plan)[None], None


AttentionInterface.register(IMPLEMENTATION, _attend)
AttentionMaskInterface.register(IMPLEMENTATION, sdpa_mask)
