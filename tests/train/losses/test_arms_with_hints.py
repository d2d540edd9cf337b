"""The gradients of the arms that use hints in other ways, and of targets whose rollout is read without a gradient,
through the whole learner and beside the formulas in float64."""

from dataclasses import replace
from pathlib import Path

import pytest

from gametape.train.batch import TrainBatch, TrainSample, target_sample
from gametape.train.policy import TrainablePolicy
from gametape.train.rollouts import chosen_span
from tests.train.losses.cases import (
    ROLLOUTS,
    TARGET,
    TOKENS,
    float64_policy,
    make_batch,
    reference,
    relative_error,
    run_config,
    take_steps,
)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> TrainablePolicy:
    directory: Path = tmp_path_factory.mktemp("tiny") / "start"
    return float64_policy(directory)


def cut_batch(policy: TrainablePolicy) -> TrainBatch:
    """Some rollouts with an advantage, and for each target of the others a sample that is learned at its end alone;
    beside each another turn that is held to the start."""
    samples: list[TrainSample] = []
    for sample in make_batch(policy, targets=True).samples:
        if sample.prompt_number == 0:
            samples.append(sample)
        elif sample.targets:
            samples.append(target_sample(sample.segment, sample.prompt_number, TARGET, prefix_gradient=False))
            held = chosen_span(sample.segment, 10, 3)
            samples.append(TrainSample(held, sample.prompt_number, frozen_prefix=9, anchored=True))
    return TrainBatch(tuple(samples), ROLLOUTS, tokens=TOKENS)


@pytest.mark.parametrize("portion", [60, 16384])
def test_without_the_gradient_of_the_prefix_it_is_that_of_the_turn_alone(policy: TrainablePolicy, portion: int) -> None:
    config, batch = run_config("loo", portion=portion, ttf={"prefix_gradient": False}), cut_batch(policy)
    assert sum(bool(sample.frozen_prefix) for sample in batch.samples) > 4
    ((step,), _) = take_steps(policy, config, batch)
    assert relative_error(step.gradient, reference(policy, step, step, batch.samples, config)) < 1e-9
    whole = [replace(sample, frozen_prefix=0) for sample in batch.samples]
    assert relative_error(reference(policy, step, step, whole, config), step.gradient) > 1e-3


def test_what_is_frozen_is_read_once_and_costs_no_backward(policy: TrainablePolicy) -> None:
    config, batch = run_config("loo", ttf={"prefix_gradient": False, "anchor": 0.0}), cut_batch(policy)
    only = tuple(sample for sample in batch.samples if sample.targets and sample.frozen_prefix)
    _, cut = take_steps(policy, config, replace(batch, samples=only))
    _, whole = take_steps(policy, config, replace(batch, samples=tuple(replace(one, frozen_prefix=0) for one in only)))
    assert cut.tokens == len(only) * (TARGET.length + 1)
    assert whole.tokens >= 3 * cut.tokens
    assert cut.forwarded == whole.forwarded


def test_a_teacher_that_read_every_hint_first_pulls_at_every_token_alike(policy: TrainablePolicy) -> None:
    """Two turns of a rollout, both read after a hint before the first of them; no weight but the cap."""
    samples = []
    for sample in make_batch(policy, targets=True).samples:
        ids = sample.segment.ids
        later = replace(TARGET, start=15, length=3, hint_ids=(*TARGET.hint_ids, *ids[TARGET.start : 15]))
        samples.append(replace(sample, targets=(TARGET, later) if all(sample.segment.mask[15:18]) else ()))
    batch = TrainBatch(tuple(samples), ROLLOUTS, tokens=TOKENS)
    config = run_config("loo", arm="rlvr_opsd", ttf={"gamma": 1.0, "anchor": 0.0})
    assert any(sample.targets for sample in batch.samples)
    ((step,), _) = take_steps(policy, config, batch)
    assert relative_error(step.gradient, reference(policy, step, step, batch.samples, config)) < 1e-9


@pytest.mark.parametrize("variant", ["loo", "grpo"])
def test_turns_with_rewards_of_their_own_have_their_own_advantages(policy: TrainablePolicy, variant: str) -> None:
    samples = []
    for number, sample in enumerate(make_batch(policy, targets=False).samples):
        steps = [at // 6 for at in range(len(sample.segment.ids))]
        segment = replace(sample.segment, steps=steps)
        own = ((2, sample.advantage - 1.0), (3, 0.25)) if number % 2 else ()
        samples.append(replace(sample, segment=segment, step_advantages=own))
    batch = TrainBatch(tuple(samples), ROLLOUTS, tokens=TOKENS)
    config = run_config(variant, arm="rlvr_turn_reward", epochs=2)
    steps, _ = take_steps(policy, config, batch)
    for step in steps:
        assert relative_error(step.gradient, reference(policy, step, steps[0], batch.samples, config)) < 1e-9
