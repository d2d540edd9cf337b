"""Targets in the loss: the hinted branch beside its line, and what it does to the weights."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from gametape.core.config import OptimConfig, RunConfig, TinyConfig, TTFConfig
from gametape.core.token_segments import TokenSegment
from gametape.train.algorithms.base import MicroBatch
from gametape.train.algorithms.ttf import Teacher, Ttf
from gametape.train.batch import TrainBatch, TrainSample, pack_samples
from gametape.train.learner import LocalLearner
from gametape.train.policy import TrainablePolicy, create_tiny_policy, load_policy
from gametape.train.policy_module import PolicyModule
from gametape.train.references import StepReferences
from gametape.train.rollouts import DistillTarget, distill_target_at
from gametape.train.token_logprobs import span_logits, token_logprobs


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> TrainablePolicy:
    directory = tmp_path_factory.mktemp("tiny") / "start"
    create_tiny_policy(directory, TinyConfig(layers=2, width=32, heads=2, window=256), seed=3)
    return load_policy(directory)


def segment(length: int, seed: int) -> TokenSegment:
    """Three turns of four chosen tokens each, at 10, 20 and 30."""
    ids = torch.randint(0, 150, (length,), generator=torch.Generator().manual_seed(seed)).tolist()
    steps = [0] * length
    for step, start in enumerate((10, 20, 30), start=1):
        steps[start : start + 4] = [step] * 4
    mask = [int(step > 0) for step in steps]
    versions = [0 if bit else -1 for bit in mask]
    return TokenSegment(ids, mask, [-3.0 * bit for bit in mask], versions, steps)


TARGET = DistillTarget(
    start=20, length=4, shared_prefix=19, hint_ids=(5, 6, 7, 8), kind="k", text="t", trajectory_id="r", step=2
)


def config(**ttf: Any) -> RunConfig:
    return RunConfig(arm="rlvr_ttf", tasks="worlds:easy", ttf=TTFConfig(anchor=0.0, **ttf))


def samples(*advantages: float, target: DistillTarget = TARGET) -> list[TrainSample]:
    return [TrainSample(segment(36, seed), seed, value, targets=(target,)) for seed, value in enumerate(advantages)]


def test_the_branch_beside_its_line_reads_what_a_line_of_its_own_would(policy: TrainablePolicy) -> None:
    beside, apart = (
        Teacher(PolicyModule(policy.network), TTFConfig(teacher="current")),
        Teacher(PolicyModule(policy.network), TTFConfig()),
    )
    chosen = pack_samples(samples(0.5, -0.5), branches=True)
    hidden_NE, head_VE, _ = PolicyModule(policy.network)(chosen.packed)
    packed = beside.rows_for(chosen.target_rows, hidden_NE, head_VE)
    separate = apart.rows_for(pack_samples(samples(0.5, -0.5)).target_rows, hidden_NE, head_VE)
    assert (packed.tokens_read, separate.tokens_read) == (2 * (4 + 4), 2 * (19 + 4 + 4 + 5))
    torch.testing.assert_close(packed.hinted_TE, separate.hinted_TE, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(packed.plain_TE, separate.plain_TE, atol=1e-5, rtol=1e-5)
    plain = policy.network(torch.tensor([[*segment(36, 0).ids[:19], 5, 6, 7, 8, *segment(36, 0).ids[20:24]]])).logits
    hinted_SV = span_logits(packed.hinted_TE[:4], packed.head_VE)
    torch.testing.assert_close(hinted_SV, plain[0, 22:26], atol=1e-5, rtol=1e-5)


def test_a_hint_may_lie_in_what_lines_share(policy: TrainablePolicy) -> None:
    """Two lines of one group that say the same, the second with an early target."""
    family = [
        TrainSample(segment(36, 1), 7, 0.5),
        TrainSample(segment(36, 1), 7, -0.5, targets=(replace(TARGET, start=10, shared_prefix=6, step=1),)),
    ]
    chosen = pack_samples(family, branches=True)
    hidden_NE, head_VE, _ = PolicyModule(policy.network)(chosen.packed)
    ids = segment(36, 1).ids
    plain = policy.network(torch.tensor([[*ids[:6], 5, 6, 7, 8, *ids[10:14]]])).logits
    reading = Teacher(PolicyModule(policy.network), TTFConfig(teacher="current")).rows_for(
        chosen.target_rows, hidden_NE, head_VE
    )
    teacher_SV = span_logits(reading.hinted_TE, reading.head_VE)
    torch.testing.assert_close(teacher_SV, plain[0, 9:13], atol=1e-5, rtol=1e-5)
    student_SV = span_logits(hidden_NE[chosen.target_rows[0].rows_S], head_VE)
    torch.testing.assert_close(student_SV, policy.network(torch.tensor([ids])).logits[0, 9:13], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("teacher", ["current", "ema", "start"])
def test_a_rollout_without_an_advantage_still_carries_its_targets(policy: TrainablePolicy, teacher: str) -> None:
    before = {name: tensor.clone() for name, tensor in policy.weights().items()}
    update = LocalLearner(policy, config(teacher=teacher)).update(TrainBatch(tuple(samples(0.0)), rollouts=4), 0, 0)
    assert (update.targets, update.ttf is not None, update.lines) == (1, True, 1)
    assert any(not torch.equal(tensor, before[name]) for name, tensor in policy.weights().items())
    policy.load_weights(before)


def test_a_current_teacher_that_reads_no_hint_teaches_exactly_nothing(policy: TrainablePolicy) -> None:
    before = {name: tensor.clone() for name, tensor in policy.weights().items()}
    unhinted = replace(TARGET, shared_prefix=20, hint_ids=())
    learner = LocalLearner(policy, config(teacher="current"))
    update = learner.update(TrainBatch(tuple(samples(0.0, target=unhinted)), rollouts=4), 0, 0)
    assert update.gradient == pytest.approx(0.0, abs=1e-6)
    assert max(learner.algorithm.target_metrics[0].kl) == pytest.approx(0.0, abs=1e-6)
    policy.load_weights(before)


def test_an_update_says_what_it_saw_at_each_token_of_a_rollout_with_a_target(policy: TrainablePolicy) -> None:
    """By step, as they were sampled, and by the weights that the update began with."""
    learner = LocalLearner(policy, config(teacher="current"))
    before = {name: tensor.clone() for name, tensor in policy.weights().items()}
    both = samples(0.5, -0.5)
    scores = {id(sample): logp_T.tolist() for sample, logp_T in zip(both, learner.score(both), strict=True)}
    learner.update(TrainBatch(tuple(both), rollouts=4), 0, 0)
    with_target = [sample for sample in both if sample.targets]
    steps = [sample.segment.steps[at] for sample in with_target for at in sample.sampled_positions]
    readings = learner.algorithm.token_readings
    assert [one.step for one in readings for _ in one.learner] == steps
    assert {one.rollout for one in readings} == {with_target[0].targets[0].trajectory_id}
    expected = [value for sample in with_target for value in scores[id(sample)]]
    assert [value for one in readings for value in one.learner] == pytest.approx(expected, abs=1e-3)
    assert all(len(one.learner) == len(one.entropy) and min(one.entropy) > 0 for one in readings)
    policy.load_weights(before)


def test_only_the_span_pulls(policy: TrainablePolicy) -> None:
    """The gradient at the last hidden states is zero for every chosen token but those of the span."""
    algorithm = Ttf(config(teacher="start"))
    algorithm.setup(PolicyModule(policy.network))
    chosen = pack_samples(samples(0.0))
    hidden_NE, head_VE = (end.detach() for end in PolicyModule(policy.network)(chosen.packed)[:2])
    hidden_ME = hidden_NE[chosen.rows_M].requires_grad_()
    logp_M, _ = token_logprobs(hidden_ME, head_VE, chosen.targets_M)
    references = StepReferences(chosen.samples, cap=2.0)
    compared = references.of_tokens(chosen, logp_M)
    micro = MicroBatch(
        TrainBatch(chosen.samples, rollouts=4),
        chosen,
        logp_M,
        hidden_ME,
        head_VE,
        hidden_NE,
        compared,
        references.rollout_sums(chosen, logp_M, compared),
        lambda _packed: logp_M.detach(),
    )
    extra = algorithm.extra_loss(micro)
    assert extra is not None
    (grad_ME,) = torch.autograd.grad(extra.loss, hidden_ME)
    touched = grad_ME.abs().sum(-1).nonzero().flatten().tolist()
    assert touched == chosen.target_rows[0].positions_S.tolist() == [4, 5, 6, 7]


def test_portions_without_a_target_leave_the_cap_to_those_that_have_one(policy: TrainablePolicy) -> None:
    """An advantage too small to matter puts a line beside the target, in the same portion or in one of its own."""
    before = {name: tensor.clone() for name, tensor in policy.weights().items()}
    beside = TrainSample(segment(36, 8), 8, advantage=1e-15)
    batch = TrainBatch((*samples(0.0), beside), rollouts=4)
    norms = []
    for portion in (16384, 36):
        capped = config(clip_norm=1e-6).model_copy(update={"optim": OptimConfig(micro_batch_tokens=portion)})
        norms.append(LocalLearner(policy, capped).update(batch, 0, 0).gradient)
        policy.load_weights(before)
    assert norms[0] == pytest.approx(norms[1], rel=1e-3)
    assert norms[0] != 0.0


def test_a_target_finds_the_turn_and_where_the_hint_goes_in() -> None:
    own = segment(36, 4)
    hinted = [*own.ids[:18], 90, 91, *own.ids[18:20]]
    target = distill_target_at([own], 2, hinted, "kind", "text")
    assert (target.segment_index, target.start, target.length, target.shared_prefix) == (0, 20, 4, 18)
    assert [*own.ids[: target.shared_prefix], *target.hinted_branch(own)] == [*hinted, *own.ids[20:24]]
    with pytest.raises(ValueError, match="step 9"):
        distill_target_at([own], 9, hinted, "", "")


def test_the_slow_teacher_follows_and_its_weights_come_back(policy: TrainablePolicy) -> None:
    teacher = Teacher(PolicyModule(policy.network), TTFConfig(teacher="ema", ema=0.5))
    other = Teacher(PolicyModule(policy.network), TTFConfig(teacher="ema", ema=0.5))
    with torch.no_grad():
        before = policy.network.lm_head.weight.clone()
        policy.network.lm_head.weight.add_(1.0)
    teacher.follow()
    torch.testing.assert_close(teacher.tensors()["model.embed_tokens.weight"], before + 0.5)
    other.load(teacher.tensors())
    assert torch.equal(other.tensors()["model.embed_tokens.weight"], teacher.tensors()["model.embed_tokens.weight"])
    with torch.no_grad():
        policy.network.lm_head.weight.sub_(1.0)
