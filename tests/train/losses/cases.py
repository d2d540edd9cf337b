"""Batches and learners for comparing gradients: tiny networks in float64, rollouts in several segments, targets."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gametape.core.config import OptimConfig, RLConfig, RunConfig, TinyConfig, TTFConfig
from gametape.core.token_segments import TokenSegment
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.learner import LocalLearner
from gametape.train.policy import TrainablePolicy, create_tiny_policy, load_policy
from gametape.train.rollouts import DistillTarget
from tests.train.exact import exact
from tests.train.losses.reference import Policies, Setting, hidden_states, step_gradient

VOCABULARY = 150
ROLLOUTS, TOKENS = 12, 260
"""Those that were sampled, of which some were dropped."""
_SHARPER = 5.0
"""A factor on the logits: a new network is sure of nothing, and the anchor holds what the start was sure of."""
TARGET = DistillTarget(start=12, length=3, shared_prefix=11, hint_ids=(5, 6, 7), kind="k", text="t", step=2)


def float64_policy(directory: Path) -> TrainablePolicy:
    create_tiny_policy(directory, TinyConfig(layers=2, width=32, heads=2, window=128), seed=3)
    policy = load_policy(directory)
    exact(policy.network)
    with torch.no_grad():
        policy.network.model.norm.weight.mul_(_SHARPER)
    return policy


def params_of(network: Any) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in network.named_parameters()}


def make_batch(policy: TrainablePolicy, targets: bool, recorded: bool = False) -> TrainBatch:
    """Three prompts of three rollouts, in one segment, in four, and in two."""
    samples, segments = [], iter(_drawn_segments(policy))
    for prompt in range(3):
        for index, count in enumerate(_SEGMENTS):
            advantage = (1.5, -0.7, -0.8)[index] * (1 + prompt)
            for number in range(count):
                hinted = (TARGET,) if targets and number == 1 else ()
                earlier = recorded and prompt == 0
                samples.append(
                    TrainSample(next(segments), prompt, advantage, 0.0, hinted, rollout_index=index, recorded=earlier)
                )
    return TrainBatch(tuple(samples), ROLLOUTS, tokens=TOKENS)


_SEGMENTS = (1, 4, 2)
_DRAWN: dict[int, list[TokenSegment]] = {}
"""By the identity of a policy, because drawing takes longer than learning."""


def _drawn_segments(policy: TrainablePolicy) -> list[TokenSegment]:
    if id(policy) not in _DRAWN:
        rng = torch.Generator().manual_seed(0)
        openings = [torch.randint(0, VOCABULARY, (6,), generator=rng).tolist() for _ in range(3)]
        shifts = [0.2 if index else 0.5 for index, count in enumerate(_SEGMENTS) for _ in range(count)]
        _DRAWN[id(policy)] = [_segment(policy, opening, shift, rng) for opening in openings for shift in shifts]
    return _DRAWN[id(policy)]


def _segment(policy: TrainablePolicy, opening: list[int], shift: float, rng: torch.Generator) -> TokenSegment:
    """Half of the chosen tokens are the likeliest. The sampler's log-probs lie around the policy's own, so that weights
    are cut on one side."""
    length = 20 + 3 * int(torch.randint(0, 5, (1,), generator=rng))
    mask = [0] * 8 + [int(at % 5 < 3 or at in range(12, 15)) for at in range(8, length)]
    params, ids, logged = params_of(policy.network), list(opening), [0.0] * length
    for at in range(len(opening), length):
        logs_V = _logits(params, policy, ids)[-1].log_softmax(-1)
        greedy = mask[at] and float(torch.rand(1, generator=rng)) < 0.5
        ids.append(int(logs_V.argmax()) if greedy else int(torch.randint(0, VOCABULARY, (1,), generator=rng)))
        if mask[at]:
            logged[at] = float(logs_V[ids[at]]) + shift + 0.5 * float(torch.randn(1, generator=rng))
    return TokenSegment(ids, mask, logged, [0] * length, mask)


def _logits(params: dict[str, Tensor], policy: TrainablePolicy, ids: Sequence[int]) -> Tensor:
    return hidden_states(params, policy.network.config, ids) @ params["model.embed_tokens.weight"].T


def run_config(variant: str, portion: int = 16384, epochs: int = 1, minibatches: int = 1, **more: Any) -> RunConfig:
    return RunConfig(
        arm=more.pop("arm", "rlvr_ttf"),
        tasks="worlds:easy",
        seed=5,
        optim=OptimConfig(learning_rate=more.pop("learning_rate", 1e-3), clip_norm=1e9, micro_batch_tokens=portion),
        rl=RLConfig(loss=variant, epochs=epochs, minibatches=minibatches, normalizer_tokens=8, **more.pop("rl", {})),
        ttf=TTFConfig(normalizer_tokens=4, **more.pop("ttf", {})),
    )


@dataclass(frozen=True)
class Step:
    """One step of the optimiser, as it was about to be taken."""

    before: dict[str, Tensor]
    gradient: dict[str, Tensor]


def moved_params(policy: TrainablePolicy, seed: int = 1, far: float = 0.02) -> dict[str, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return {
        name: tensor + far * torch.randn(tensor.shape, generator=rng, dtype=tensor.dtype)
        for name, tensor in params_of(policy.network).items()
    }


def take_steps(
    policy: TrainablePolicy, config: RunConfig, batch: TrainBatch, moved: dict[str, Tensor] | None = None
) -> tuple[list[Step], Any]:
    """The steps of one update, and its metrics. The policy is as before afterwards. With `moved` each step leads to
    these weights, whatever its gradient is."""
    start = params_of(policy.network)
    learner, steps = LocalLearner(policy, config), []
    take = learner.optimizer.step

    def recorded(factor: float) -> None:
        named = {name: tensor.grad for name, tensor in policy.network.named_parameters()}
        gradient = {name: grad.clone() for name, grad in named.items() if grad is not None}
        steps.append(Step(params_of(policy.network), gradient))
        if moved is None:
            take(factor)
        else:
            policy.load_weights(moved)

    learner.optimizer.step = recorded  # type: ignore[method-assign]
    metrics = learner.update(batch, 0, 0)
    policy.load_weights(start)
    return steps, metrics


def reference(
    policy: TrainablePolicy, step: Step, first: Step, samples: Sequence[TrainSample], config: RunConfig
) -> dict[str, Tensor]:
    policies = Policies(step.before, first.before, first.before, first.before, policy.network.config)
    return step_gradient(policies, samples, setting_of(config))


def setting_of(config: RunConfig) -> Setting:
    rl, ttf = config.rl, config.ttf
    return Setting(
        rl.loss,
        ROLLOUTS / rl.minibatches,
        TOKENS / rl.minibatches,
        rl.clip_low,
        rl.clip_high,
        rl.importance_cap,
        rl.normalizer_tokens,
        rl.temperature,
        ttf.weight,
        ttf.normalizer_tokens,
        ttf.beta,
        ttf.gamma,
        ttf.kappa,
        ttf.anchor,
        ttf.clip_norm,
        by_effect=config.arm != "rlvr_opsd",
    )


def relative_error(gradient: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    """The largest difference of any entry, over the largest entry."""
    largest = max(float(tensor.abs().max()) for tensor in expected.values())
    return max(float((gradient[name] - expected[name]).abs().max()) for name in expected) / largest
