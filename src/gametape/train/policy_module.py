"""The network and its head as one module, over packed trees: what training goes forward and backward through.

Layers are transformers' own, so that any decoder of it trains, and so that what wraps layers (sharding, compilation,
checkpointing of activations) works as it does elsewhere. All parameters are read inside of `forward`, and every
gradient goes back through what it gives out: that is what lets FSDP gather the ones and reduce the others.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from transformers.modeling_layers import GradientCheckpointingLayer

from gametape.core.errors import BadInput
from gametape.train.batch import PackedBatch
from gametape.train.narrow_layers import narrow_layers
from gametape.train.packing import PackedTokens
from gametape.train.token_logprobs import token_logprobs
from gametape.train.tree_layers import TreePass, attention_window, use_tree_attention

if TYPE_CHECKING:
    from gametape.train.lora import Adapters


_COMPILATIONS = 64
"""Of one kind of layer, for numbers of rows, with a gradient and without; after that layers run as they are."""
_ROW_STEPS, _FEW_ROWS = 16, 128
_FEW_DETACHED = 8
"""On a GPU, detached rows that are at most one for so many others go along with them: starting all kernels of a second
pass takes longer than a backward through a few rows more."""


class ForwardOutputs(NamedTuple):
    """A tuple of tensors, as wrappers of modules expect it."""

    hidden_NE: Tensor
    """After the last norm, in the order of the packed rows; detached rows have no gradient."""
    head_VE: Tensor
    """The matrix that makes logits of them."""
    router_logits: tuple[Tensor, ...] = ()
    """[N, experts] for each layer with a mixture of experts, for the rows with a gradient."""


class PolicyModule(nn.Module):  # type: ignore[misc]
    """A causal language model of transformers."""

    def __init__(self, network: Any, adapters: "Adapters | None" = None) -> None:
        """The network attends along trees from now on; used by itself it computes what it always did."""
        super().__init__()
        _check_head(network)
        self.network, self.adapters = network, adapters
        self._along_trees = use_tree_attention(network)
        self._window = attention_window(network)
        self._dtype: torch.dtype | None = None
        """What layers compute in, where that is not what their parameters have."""
        self._row_step = 0
        """What numbers of rows are padded to a multiple of; 0 where they are taken as they are."""
        self.experts = _experts(network)
        """How many experts a layer of a mixture has; 0 where there are none."""
        self.experts_per_token = int(getattr(network.config.get_text_config(), "num_experts_per_tok", None) or 0)

    @property
    def device(self) -> torch.device:
        """Where it computes; with parameters that are kept elsewhere it is where its buffers are."""
        first = next(iter(self.network.buffers()), None)
        device: torch.device = (next(self.network.parameters()) if first is None else first).device
        return device

    @property
    def trains_head(self) -> bool:
        return bool(self.network.get_output_embeddings().weight.requires_grad)

    def forward(self, packed: PackedTokens) -> ForwardOutputs:
        head = self.network.get_output_embeddings().weight
        head_VE = head.to(self._dtype) if self._dtype not in {None, head.dtype} else head.view_as(head)
        if self._along_trees and max(map(len, packed.paths)) <= self._window:
            return self._by_tree(packed, head_VE)
        return ForwardOutputs(self._by_sequences(packed), head_VE)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def chosen_logprobs(self, batch: PackedBatch, temperature: float) -> Tensor:
        """[M]: what it gives the chosen tokens."""
        outputs = self(batch.packed)
        rows_ME = outputs.hidden_NE[batch.rows_M]
        return token_logprobs(rows_ME, outputs.head_VE, batch.targets_M, temperature)[0]

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def hidden_at(self, packed: PackedTokens, rows_T: Tensor) -> tuple[Tensor, Tensor]:
        """The last hidden states of these rows, and the matrix that makes logits of them."""
        outputs = self(packed)
        return outputs.hidden_NE[rows_T], outputs.head_VE

    def checkpoint_activations(self) -> None:
        """Compute layers again in the backward instead of keeping what they computed."""
        options = {"use_reentrant": False, "preserve_rng_state": False}
        self.network.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)
        for module in self.network.modules():
            if getattr(module, "gradient_checkpointing", False):
                module.training = True  # what transformers goes by; the layers in it stay as they are, without dropout

    def place_whole(self, device: str, dtype: torch.dtype) -> bool:
        """Move to a device, and compute in `dtype` there, whatever its parameters have. False, and nothing changes,
        where its layers cannot."""
        if self.experts or not narrow_layers(self.network, dtype):
            return False
        self._dtype = dtype
        self.to(device)
        return True

    def compile_layers(self, tokens: int, backend: str = "inductor") -> bool:
        """Compile each layer by itself; all of one kind share their code. Rows are padded from now on, to numbers of
        which there are few, because there is a compilation for each; `tokens` is the usual number. False, and nothing
        changes, where layers are not attention and plain products alone."""
        if not self._along_trees or self.experts:
            return False
        torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, _COMPILATIONS)
        for layer in self.network.modules():
            if isinstance(layer, GradientCheckpointingLayer):
                layer.forward = torch.compile(layer.forward, backend=backend, dynamic=False)
        self._row_step = max(_FEW_ROWS, -(-tokens // _ROW_STEPS))
        return True

    def release(self) -> None:
        """After a forward that no backward follows: give back the gathered head, which would outlive a change."""
        if isinstance(self, FSDPModule):
            self.reshard()

    def _by_tree(self, packed: PackedTokens, head_VE: Tensor) -> ForwardOutputs:
        """Frozen rows go through all layers before the others, and detached ones after them, reading their keys and
        values, or with them."""
        frozen, live, count = packed.frozen_rows, packed.gradient_rows, len(packed.ids_N)
        few = live < count - frozen <= live + live // _FEW_DETACHED
        together = packed.ids_N.is_cuda and not frozen and few
        stages = [
            (packed.frozen_plan, False),
            (packed.whole_plan if together else packed.plan, True),
            *([] if together else [(packed.detached_plan, False)]),
        ]
        parts: list[Tensor] = []
        routers: tuple[Tensor, ...] = ()
        earlier: dict[int, tuple[Tensor, Tensor]] = {}
        at = 0
        for plan, learned in stages:
            if not plan.rows:
                continue
            rows = slice(at, at + plan.rows)
            tree = TreePass(plan, before=earlier, kept={} if rows.stop < count else None)
            with torch.set_grad_enabled(learned and torch.is_grad_enabled()):
                hidden_NE, chosen = self._rows(packed.ids_N[rows], packed.positions_N[rows], tree)
            parts.append(hidden_NE)
            if learned:  # in the place of frozen rows, whose choices nothing asks for, zeros
                routers = tuple(functional.pad(logits_NE, (0, 0, at, 0)) if at else logits_NE for logits_NE in chosen)
            earlier, tree.kept = _followed(earlier, tree.kept or {}), None
            at = rows.stop
        return ForwardOutputs(torch.cat(parts) if len(parts) > 1 else parts[0], head_VE, routers)

    def _rows(self, ids_N: Tensor, positions_N: Tensor, tree: TreePass) -> tuple[Tensor, tuple[Tensor, ...]]:
        count = len(ids_N)
        if padding := padded_rows(count, self._row_step) - count if self._row_step else 0:
            ids_N, positions_N = functional.pad(ids_N, (0, padding)), functional.pad(positions_N, (0, padding))
        no_mask = ids_N.new_zeros(1, 1, 1, 1)  # of four dimensions: transformers takes it for one that is ready
        wanted = {"output_router_logits": True} if self.experts else {}
        out = self.network.base_model(
            ids_N[None], position_ids=positions_N[None], attention_mask=no_mask, use_cache=False, tree=tree, **wanted
        )
        hidden_NE = out.last_hidden_state[0]
        if hidden_NE.grad_fn is not None:
            # What compiled layers do not keep, and their backward needs.
            hidden_NE.grad_fn.metadata["plan"] = tree if tree.before else tree.plan
        return hidden_NE[:count] if padding else hidden_NE, tuple(out.router_logits) if self.experts else ()

    def _by_sequences(self, packed: PackedTokens) -> Tensor:
        """Each node's whole sequence; shared prefixes are computed for each of them, frozen ones with a gradient where
        something is learned after them."""
        ends = packed.frozen_rows, packed.frozen_rows + packed.gradient_rows
        stages = [sum(rows.start >= end for end in ends) for rows in packed.rows]
        parts: list[Tensor] = []
        for stage in range(len(ends) + 1):
            numbers = [number for number, own in enumerate(stages) if own == stage]
            if numbers:
                with torch.set_grad_enabled(torch.is_grad_enabled() and stage == 1):
                    parts.append(self._padded(packed, numbers))
        return torch.cat(parts)

    def _padded(self, packed: PackedTokens, numbers: list[int]) -> Tensor:
        sequences = [packed.ids_N[packed.paths[number]] for number in numbers]
        mask_BT = pad_sequence([torch.ones_like(ids) for ids in sequences], batch_first=True)
        ids_BT = pad_sequence(sequences, batch_first=True)
        out = self.network.base_model(ids_BT, attention_mask=mask_BT, use_cache=False)
        parts = []
        for hidden_TE, ids, number in zip(out.last_hidden_state, sequences, numbers, strict=True):
            rows = packed.rows[number]
            parts.append(hidden_TE[len(ids) - (rows.stop - rows.start) : len(ids)])
        return torch.cat(parts)


def _followed(
    before: Mapping[int, tuple[Tensor, Tensor]], own: Mapping[int, tuple[Tensor, Tensor]]
) -> dict[int, tuple[Tensor, Tensor]]:
    """By layer: the keys and values of two passes, one after the other."""
    if not before or not own:
        return dict(own)
    return {
        layer: (torch.cat((before[layer][0], keys)), torch.cat((before[layer][1], values)))
        for layer, (keys, values) in own.items()
    }


def padded_rows(count: int, step: int) -> int:
    """The next multiple of `step`, or below it the next power of two."""
    if count > step:
        return -(-count // step) * step
    return min(step, max(_FEW_ROWS, 1 << (count - 1).bit_length()))


def _check_head(network: Any) -> None:
    """Logits have to be a plain product of the last hidden states with a matrix."""
    head, config = network.get_output_embeddings(), network.config
    scales = [getattr(config, name, None) for name in ("logit_scale", "logits_scaling")]
    capped = getattr(config, "final_logit_softcapping", None) is not None
    if head is None or head.bias is not None or capped or any(scale not in {None, 1.0} for scale in scales):
        raise BadInput(f"cannot train {config.model_type}: its logits are not a plain product with its last layer")


def _experts(network: Any) -> int:
    config = network.config.get_text_config()
    names = ("num_experts", "num_local_experts")
    has_routers = "router_logits" in (getattr(network, "_can_record_outputs", None) or {})
    return next((int(value) for name in names if (value := getattr(config, name, None))), 0) if has_routers else 0
