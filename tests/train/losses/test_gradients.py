"""Every variant's gradient through the whole learner, beside one written out from the formulas; with ratios other than
1, rollouts in several segments, and targets in some portions."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from random import Random

import pytest

from gametape.core.seeds import seed_for
from gametape.core.token_segments import TokenSegment
from gametape.train.batch import TrainBatch
from gametape.train.policy import TrainablePolicy
from tests.train.losses.cases import (
    ROLLOUTS,
    TOKENS,
    float64_policy,
    make_batch,
    moved_params,
    reference,
    relative_error,
    run_config,
    take_steps,
)

VARIANTS = ("loo", "dr_grpo", "grpo", "dapo", "cispo", "gspo")


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> TrainablePolicy:
    directory: Path = tmp_path_factory.mktemp("tiny") / "start"
    return float64_policy(directory)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_gradient_is_that_of_the_formulas(policy: TrainablePolicy, variant: str) -> None:
    """Portions of 60 rows split rollouts; from the second step on the ratios differ from 1, and some are clipped."""
    config = run_config(variant, portion=60, epochs=2)
    batch = make_batch(policy, targets=True, recorded=True)
    steps, metrics = take_steps(policy, config, batch)
    assert len(steps) == metrics.steps == 2
    for step in steps:
        assert relative_error(step.gradient, reference(policy, step, steps[0], batch.samples, config)) < 1e-9
    assert metrics.ratio["least"] < 1 - config.rl.clip_low
    assert metrics.ratio["most"] > 1 + config.rl.clip_high
    assert 0 < metrics.ratio["clipped"] < 1
    assert metrics.importance["least"] < metrics.importance["median"] < metrics.importance["most"] <= 2.0


def test_minibatches_have_the_gradients_of_their_samples(policy: TrainablePolicy) -> None:
    config = run_config("grpo", minibatches=2, epochs=2)
    batch = make_batch(policy, targets=True)
    steps, _ = take_steps(policy, config, batch)
    seeds = [seed_for(config.seed, "minibatches", 0, epoch) for epoch in range(2)]
    minibatches = [minibatch for seed in seeds for minibatch in batch.minibatches(2, seed)]
    for step, minibatch in zip(steps, minibatches, strict=True):
        assert relative_error(step.gradient, reference(policy, step, steps[0], minibatch.samples, config)) < 1e-9


def test_a_minibatch_holds_whole_rollouts_and_every_sample_is_in_one(policy: TrainablePolicy) -> None:
    batch = make_batch(policy, targets=False)
    minibatches = batch.minibatches(4, seed=1)
    assert [len({sample.rollout_key for sample in part.samples}) for part in minibatches] == [2, 2, 2, 3]
    assert sorted(id(sample) for part in minibatches for sample in part.samples) == sorted(map(id, batch.samples))
    keys = [{sample.rollout_key for sample in part.samples} for part in minibatches]
    assert sum(map(len, keys)) == len(set.union(*keys)) == 9
    assert {(part.rollouts, part.tokens) for part in minibatches} == {(ROLLOUTS / 4, TOKENS / 4)}


@pytest.mark.parametrize("variant", VARIANTS)
def test_neither_portions_nor_the_order_of_lines_change_a_gradient(policy: TrainablePolicy, variant: str) -> None:
    """With the cap of the distillation term acting over targets in several portions."""
    batch = make_batch(policy, targets=True)
    shuffled = replace(batch, samples=tuple(Random(2).sample(batch.samples, len(batch.samples))))
    capped = {"clip_norm": 0.01}
    (whole, *_), (later, *_) = (
        take_steps(policy, run_config(variant, epochs=2, ttf=capped), lines)[0][::-1] for lines in (batch, shuffled)
    )
    assert relative_error(later.gradient, whole.gradient) < 1e-9
    for portion in (1, 70):
        steps, _ = take_steps(policy, run_config(variant, portion, epochs=2, ttf=capped), batch)
        assert relative_error(steps[1].gradient, whole.gradient) < 1e-9
    (free, *_) = take_steps(policy, run_config(variant, epochs=2, ttf={"clip_norm": 1e9}), batch)[0][::-1]
    assert relative_error(free.gradient, whole.gradient) > 0.01


def test_the_variants_are_different_functions(policy: TrainablePolicy) -> None:
    """From one policy, one old policy and one sampler, each has a gradient of its own."""
    batch, moved = make_batch(policy, targets=False), moved_params(policy)
    gradients = {}
    for variant in ("loo", "dapo", "cispo", "gspo", "grpo"):
        config = run_config(variant, epochs=2)
        steps, metrics = take_steps(policy, config, batch, moved)
        assert metrics.ratio["clipped"] > 0
        assert relative_error(steps[1].gradient, reference(policy, steps[1], steps[0], batch.samples, config)) < 1e-9
        gradients[variant] = steps[1].gradient
    for one, other in combinations(gradients, 2):
        assert relative_error(gradients[one], gradients[other]) > 0.01, (one, other)


def test_a_rollout_in_four_segments_weighs_as_much_as_in_one(policy: TrainablePolicy) -> None:
    """Cut where nothing of what follows depends on it, a rollout has the same loss in `grpo` and `gspo`."""
    batch = make_batch(policy, targets=False)
    one = next(sample for sample in batch.samples if sample.rollout_index == 0)
    four = [replace(one, rollout_index=1, segment=_only(one.segment, part)) for part in range(4)]
    for variant in ("grpo", "gspo", "loo"):
        config = run_config(variant, epochs=2)
        whole, _ = take_steps(policy, config, TrainBatch((one,), ROLLOUTS), moved_params(policy))
        parts, _ = take_steps(policy, config, TrainBatch(tuple(four), ROLLOUTS), moved_params(policy))
        assert relative_error(parts[1].gradient, whole[1].gradient) < 1e-9


def _only(segment: TokenSegment, part: int) -> TokenSegment:
    """The same context, with one in four of the choices."""
    places = [at for at, bit in enumerate(segment.mask) if bit][part::4]
    return replace(segment, mask=[int(at in places) for at in range(len(segment.mask))])
