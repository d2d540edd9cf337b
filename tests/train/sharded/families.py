"""Tiny networks of four families, a batch with shared prefixes and targets for them, and a plain float64 forward."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from gametape.core.config import LoraConfig
from gametape.core.token_segments import TokenSegment
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.lora import Adapters
from gametape.train.policy import TrainablePolicy
from gametape.train.rollouts import DistillTarget
from tests.train.exact import exact
from tests.train.losses.cases import ROLLOUTS, TOKENS, params_of, setting_of
from tests.train.losses.reference import Params, Policies, chosen, step_loss

_SHAPE = {
    "vocab_size": 61,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "initializer_range": 0.25,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12, "decoder_sparse_step": 1}
FAMILIES: dict[str, Any] = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**_SHAPE, tie_word_embeddings=True)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**_SHAPE)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**_SHAPE, head_dim=8)),
    "qwen3-moe": lambda: Qwen3MoeForCausalLM(Qwen3MoeConfig(**_SHAPE, **_MOE, head_dim=8, router_aux_loss_coef=0.1)),
}
TARGET = DistillTarget(start=12, length=3, shared_prefix=11, hint_ids=(5, 6, 7), kind="k", text="t", step=2)


def policy_of(family: str) -> TrainablePolicy:
    """Without a chat format, which the learner does not need."""
    torch.manual_seed(7)
    network = FAMILIES[family]().float().eval()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.2)
    none: Any = None
    return TrainablePolicy(network, none, 128, {})


def batch_of(seed: int = 0) -> TrainBatch:
    """Three prompts of three rollouts, in one segment, in two, and in one; the middle ones have a target."""
    rng = torch.Generator().manual_seed(seed)
    samples = []
    for prompt in range(3):
        opening = _ids(8, rng)
        for index, count in enumerate((1, 2, 1)):
            for _ in range(count):
                targets = (TARGET,) if index == 1 else ()
                segment = _segment(opening, rng)
                samples.append(TrainSample(segment, prompt, (1.5, -0.7, -0.8)[index], 0.0, targets, index))
    return TrainBatch(tuple(samples), ROLLOUTS, tokens=TOKENS)


def _segment(opening: list[int], rng: torch.Generator) -> TokenSegment:
    length = 20 + 3 * int(torch.randint(0, 5, (1,), generator=rng))
    mask = [0] * 8 + [int(at % 5 < 3 or at in range(12, 15)) for at in range(8, length)]
    logged = [-(2 + 3 * float(torch.rand(1, generator=rng))) * bit for bit in mask]
    return TokenSegment([*opening, *_ids(length - 8, rng)], mask, logged, [0] * length, mask)


def _ids(count: int, rng: torch.Generator) -> list[int]:
    return torch.randint(0, 61, (count,), generator=rng).tolist()


RANK, ALPHA = 3, 6.0


def adapt(policy: TrainablePolicy) -> Adapters:
    """With adapters that are not what they start as."""
    policy.adapt(LoraConfig(rank=RANK, alpha=ALPHA), seed=1)
    assert policy.adapters
    rng = torch.Generator().manual_seed(2)
    tensors = policy.adapters.tensors()
    policy.adapters.load({name: torch.randn(one.shape, generator=rng) * 0.2 for name, one in tensors.items()})
    return policy.adapters


def expected_of_adapters(
    family: str, batch: TrainBatch, config: Any, rounded_on: str | None = None
) -> tuple[float, dict[str, Tensor]]:
    """By the chain rule, from the gradient of the weights that have the adapters in them."""
    adapters = adapt(policy_of(family)).tensors()
    pairs: dict[str, dict[str, Tensor]] = {}
    for name, tensor in adapters.items():
        owner, side = name.removeprefix("base_model.model.").removesuffix(".weight").rsplit(".lora_", 1)
        pairs.setdefault(owner, {})[side] = tensor.double()
    scale = ALPHA / RANK
    added = {f"{owner}.weight": scale * pair["B"] @ pair["A"] for owner, pair in pairs.items()}
    loss, gradients = expected(family, batch, config, added, rounded_on)
    found = {}
    for owner, pair in pairs.items():
        slope = gradients[f"{owner}.weight"]
        found[f"{owner}.lora_A.weight"] = scale * pair["B"].T @ slope
        found[f"{owner}.lora_B.weight"] = scale * slope @ pair["A"].T
    return loss, found


def expected(
    family: str, batch: TrainBatch, config: Any, added: Params | None = None, rounded_on: str | None = None
) -> tuple[float, dict[str, Tensor]]:
    """The loss and its gradient in float64, every sample by itself through transformers' own forward. What is `added`
    to the weights is not in the start and in the teacher. With `rounded_on` transformers' forward and backward are in
    bfloat16 on that device, which says how near to the exact ones they can come; losses are exact all the same."""
    network = exact(policy_of(family).network)
    params = params_of(network)
    current = {name: tensor + (added or {}).get(name, 0) for name, tensor in params.items()}
    mixture = family.endswith("moe")

    place, kind = (rounded_on, torch.bfloat16) if rounded_on else ("cpu", torch.float64)
    network = network.to(place)

    def states(given: Params, _config: Any, ids: Sequence[int]) -> Tensor:
        placed = {name: tensor.to(place, kind) for name, tensor in given.items()}
        called = torch.func.functional_call(
            network, placed, (torch.tensor([list(ids)], device=place),), {"output_hidden_states": True}
        )
        return called.hidden_states[-1][0].double().cpu()

    balance = _balance(network) if mixture else None
    policies = Policies(current, current, params, params, network.config, states, balance)
    return step_loss(policies, batch.samples, setting_of(config))


def _balance(network: Any) -> Any:
    """Over rows that predict a chosen token: `experts * sum of share x mean probability`, averaged over layers."""

    def loss(params: Params, samples: Sequence[TrainSample]) -> Tensor:
        rows: list[list[Tensor]] = [[] for _ in range(network.config.num_hidden_layers)]
        for sample in samples:
            called = torch.func.functional_call(
                network, dict(params), (torch.tensor([sample.segment.ids]),), {"output_router_logits": True}
            )
            for layer, logits in enumerate(called.router_logits):
                rows[layer].append(logits[[at - 1 for at in chosen(sample)]])
        total = torch.zeros((), dtype=torch.float64)
        for pieces in rows:
            logits = torch.cat(pieces)
            best = logits.topk(network.config.num_experts_per_tok).indices
            share = torch.nn.functional.one_hot(best, logits.shape[1]).double().sum(1).mean(0)
            total = total + logits.shape[1] * (share * logits.softmax(-1).mean(0)).sum()
        return network.config.router_aux_loss_coef * total / len(rows)

    return loss
