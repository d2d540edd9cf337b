"""The gradient of one step of the optimiser, written out from the published formulas in plain torch and float64.

Nothing is shared with the package but the plain data that goes in: no packing, no portions, every sample by itself
through a decoder written here, every loss as a loop over tokens.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

Params = Mapping[str, Tensor]


@dataclass(frozen=True)
class Setting:
    """The options of a step. `rollouts` and `tokens` are the numbers that normalisers are made of."""

    variant: str
    rollouts: float
    tokens: float
    clip_low: float = 0.2
    clip_high: float = 0.28
    cap: float = 2.0
    length: int = 8
    temperature: float = 1.0
    ttf_weight: float = 0.3
    ttf_length: int = 4
    beta: float = 0.7
    gamma: float = 0.5
    kappa: float = 4.0
    anchor: float = 16.0
    ttf_cap: float = 0.5
    by_effect: bool = True
    """Whether a token counts by how far the hint moves its teacher."""


@dataclass(frozen=True)
class Policies:
    """Parameters by name: of the policy that learns, and of the others that its loss looks at."""

    current: Params
    proximal: Params
    start: Params
    teacher: Params
    config: Any
    forward: Callable[[Params, Any, Sequence[int]], Tensor] | None = None
    """The last hidden states of another family than Llama, for one sequence."""
    balance: Callable[[Params, Sequence[Any]], Tensor] | None = None
    """A loss on the routers of a mixture of experts, over all samples."""

    def states(self, params: Params, ids: Sequence[int], frozen: int = 0) -> Tensor:
        if frozen:
            return hidden_states(params, self.config, ids, frozen)
        return (self.forward or hidden_states)(params, self.config, ids)

    def logits(self, params: Params, ids: Sequence[int], temperature: float) -> Tensor:
        return self.states(params, ids) @ head_of(params).T / temperature


def head_of(params: Params) -> Tensor:
    return params.get("lm_head.weight", params["model.embed_tokens.weight"])


def hidden_states(params: Params, config: Any, ids: Sequence[int], frozen: int = 0) -> Tensor:
    """A Llama's last hidden states for one sequence, in which nothing is learned from how the first `frozen` tokens are
    read."""
    count, heads = len(ids), config.num_attention_heads
    x = params["model.embed_tokens.weight"][torch.tensor(ids)]
    size = x.shape[1] // heads
    theta = getattr(config, "rope_theta", None) or config.rope_parameters["rope_theta"]
    steps = 1.0 / theta ** (torch.arange(0, size, 2, dtype=torch.float32) / size)
    angles = torch.outer(torch.arange(count, dtype=torch.float32), steps).repeat(1, 2)
    cos, sin = angles.cos().to(x), angles.sin().to(x)  # a model's positions are defined in float32

    def norm(values: Tensor, name: str) -> Tensor:
        return values / (values.square().mean(-1, keepdim=True) + config.rms_norm_eps).sqrt() * params[name]

    def turned(values: Tensor) -> Tensor:
        other = torch.cat((-values[..., size // 2 :], values[..., : size // 2]), -1)
        return values * cos + other * sin

    for number in range(config.num_hidden_layers):
        layer = f"model.layers.{number}."
        y = norm(x, layer + "input_layernorm.weight")
        q, k, v = (
            (y @ params[f"{layer}self_attn.{part}_proj.weight"].T).view(count, heads, size).transpose(0, 1)
            for part in "qkv"
        )
        k, v = (torch.cat((part[:, :frozen].detach(), part[:, frozen:]), 1) for part in (turned(k), v))
        scores = turned(q) @ k.transpose(1, 2) / size**0.5
        scores = scores.masked_fill(torch.ones(count, count).triu(1).bool(), float("-inf"))
        seen = (scores.softmax(-1) @ v).transpose(0, 1).reshape(count, -1)
        x = x + seen @ params[layer + "self_attn.o_proj.weight"].T
        y = norm(x, layer + "post_attention_layernorm.weight")
        gate, up = (y @ params[f"{layer}mlp.{part}_proj.weight"].T for part in ("gate", "up"))
        x = x + (functional.silu(gate) * up) @ params[layer + "mlp.down_proj.weight"].T
    return norm(x, "model.norm.weight")


def chosen(sample: Any) -> list[int]:
    return [at for at, bit in enumerate(sample.segment.mask) if bit]


def logprobs(logits: Tensor, sample: Any) -> Tensor:
    places = torch.tensor(chosen(sample))
    return logits.log_softmax(-1)[places - 1, torch.tensor(sample.segment.ids)[places]]


def step_gradient(policies: Policies, samples: Sequence[Any], setting: Setting) -> dict[str, Tensor]:
    """Of the whole loss, by parameter, before the optimiser's own bound on its norm."""
    return step_loss(policies, samples, setting)[1]


def step_loss(policies: Policies, samples: Sequence[Any], setting: Setting) -> tuple[float, dict[str, Tensor]]:
    """The whole loss, before the term of targets is scaled down, and its gradient after that."""
    current = {name: tensor.detach().clone().requires_grad_() for name, tensor in policies.current.items()}
    states = [policies.states(current, sample.segment.ids, sample.frozen_prefix) for sample in samples]
    head = head_of(current)
    loss = rl_term(policies, samples, states, head, setting)
    if policies.balance:
        loss = loss + policies.balance(current, samples)
    value = float(loss.detach())
    if any(sample.targets or sample.anchored for sample in samples):
        leaves = [state.detach().requires_grad_() for state in states]
        leaf_head = head.detach().requires_grad_()
        apart = ttf_term(policies, samples, leaves, leaf_head, setting)
        slopes = torch.autograd.grad(apart, [*leaves, leaf_head], allow_unused=True)
        value += float(apart.detach())
        norm = sum(float(slope.square().sum()) for slope in slopes if slope is not None) ** 0.5
        loss = loss + min(1.0, setting.ttf_cap / norm) * ttf_term(policies, samples, states, head, setting)
    loss.backward()
    return value, {name: tensor.grad for name, tensor in current.items() if tensor.grad is not None}


def rl_term(
    policies: Policies, samples: Sequence[Any], states: Sequence[Tensor], head: Tensor, setting: Setting
) -> Tensor:
    """Rollout by rollout: the tokens of all segments of one rollout are one list."""
    rollouts: dict[object, list[tuple[Tensor, float, float, float]]] = {}
    for number, (sample, state) in enumerate(zip(samples, states, strict=True)):
        by_step = dict(sample.step_advantages)
        if not sample.advantage and not by_step:
            continue
        key = (sample.prompt_number, sample.rollout_index) if sample.rollout_index >= 0 else number
        logp = logprobs(state @ head.T / setting.temperature, sample)
        proximal = logprobs(policies.logits(policies.proximal, sample.segment.ids, setting.temperature), sample)
        for token, at in enumerate(chosen(sample)):
            sampled, old = sample.segment.logprobs[at], float(proximal[token])
            if sample.recorded:
                sampled = old = max(sampled, old - log(setting.cap))
            advantage = by_step.get(sample.segment.steps[at], sample.advantage)
            rollouts.setdefault(key, []).append((logp[token], old, sampled, advantage))
    term = LOSSES[setting.variant]
    return sum((term(tokens, setting) for tokens in rollouts.values()), start=head.new_zeros(()))


Tokens = Sequence[tuple[Tensor, float, float, float]]
"""Of one rollout: log-probability with a gradient, under the old policy, under the sampler; and the advantage."""


def clipped(ratio: Tensor, advantage: float, setting: Setting) -> Tensor:
    held = ratio.clamp(1 - setting.clip_low, 1 + setting.clip_high)
    return torch.minimum(ratio * advantage, held * advantage)


def weight(old: float, sampled: float, setting: Setting) -> float:
    return min(setting.cap, exp(old - sampled))


def by_token(tokens: Tokens, setting: Setting) -> Tensor:
    gains = [clipped((logp - old).exp(), weight(old, mu, setting) * adv, setting) for logp, old, mu, adv in tokens]
    return -torch.stack(gains).sum()


def cispo(tokens: Tokens, setting: Setting) -> Tensor:
    gains = [
        (logp.detach() - old).exp().clamp(max=1 + setting.clip_high) * weight(old, mu, setting) * adv * logp
        for logp, old, mu, adv in tokens
    ]
    return -torch.stack(gains).sum()


def gspo(tokens: Tokens, setting: Setting) -> Tensor:
    count = len(tokens)
    ratio = (torch.stack([logp - old for logp, old, _, _ in tokens]).sum() / count).exp()
    held = min(setting.cap, exp(sum(old - mu for _, old, mu, _ in tokens) / count))
    return -clipped(ratio, held * tokens[0][3], setting)


LOSSES: Mapping[str, Callable[[Tokens, Setting], Tensor]] = {
    "loo": lambda tokens, s: by_token(tokens, s) / (s.rollouts * s.length),
    "dr_grpo": lambda tokens, s: by_token(tokens, s) / (s.rollouts * s.length),
    "dapo": lambda tokens, s: by_token(tokens, s) / s.tokens,
    "cispo": lambda tokens, s: cispo(tokens, s) / s.tokens,
    "grpo": lambda tokens, s: by_token(tokens, s) / len(tokens) / s.rollouts,
    "gspo": lambda tokens, s: gspo(tokens, s) / s.rollouts,
}


def ttf_term(
    policies: Policies, samples: Sequence[Any], states: Sequence[Tensor], head: Tensor, setting: Setting
) -> Tensor:
    total, held = head.new_zeros(()), head.new_zeros(())
    for sample, state in zip(samples, states, strict=True):
        ids, targeted = sample.segment.ids, set()
        for target in sample.targets:
            span = range(target.start, target.start + target.length)
            targeted |= set(span)
            student = (state[target.start - 1 : target.start + target.length - 1] @ head.T) / setting.temperature
            total = total + target.weight * span_term(policies, sample, target, student, setting)
        if sample.anchored or (sample.targets and not sample.frozen_prefix):
            logp = logprobs(state @ head.T / setting.temperature, sample)
            start = logprobs(policies.logits(policies.start, ids, setting.temperature), sample)
            for token, at in enumerate(chosen(sample)):
                if at not in targeted and start[token] > log(0.5):
                    gap = start[token].detach() - logp[token]
                    held = held + gap.exp() - 1 - gap
    return setting.ttf_weight * total / (setting.rollouts * setting.ttf_length) + setting.anchor * held / (
        setting.rollouts * setting.length
    )


def span_term(policies: Policies, sample: Any, target: Any, student: Tensor, setting: Setting) -> Tensor:
    ids, stop = sample.segment.ids, target.start + target.length
    span = ids[target.start : stop]
    hinted_ids = [*ids[: target.shared_prefix], *target.hint_ids, *span]
    with torch.no_grad():
        hinted = policies.logits(policies.teacher, hinted_ids, setting.temperature)[-len(span) - 1 : -1]
        plain = policies.logits(policies.teacher, ids[:stop], setting.temperature)[-len(span) - 1 : -1]
    total, disagreements, prefix = student.new_zeros(()), 0, 0.0
    for place, token in enumerate(span):
        p_student, p_teacher = student[place].log_softmax(-1), hinted[place].log_softmax(-1)
        forward = (p_teacher.exp() * (p_teacher - p_student)).sum()
        reverse = (p_student.exp() * (p_student - p_teacher)).sum()
        distance = setting.beta * forward + (1 - setting.beta) * reverse
        effect = (p_teacher.exp() * (p_teacher - plain[place].log_softmax(-1))).sum()
        factor = setting.gamma**disagreements * (float(1 - torch.exp(-effect)) if setting.by_effect else 1.0)
        factor *= min(setting.cap, exp(prefix)) * min(1.0, setting.kappa / float(distance.detach()))
        total = total + factor * distance
        choice = int(p_teacher.argmax())
        disagreements += int(p_student.argmax()) != choice and token != choice
        prefix += float(p_student[token].detach()) - sample.segment.logprobs[target.start + place]
    return total
