"""Targets in the loss: the hinted branch beside its line, and what it does to the weights."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from gametape.core.config import OptimConfig, RunConfig, TinyConfig, TTFConfig
from gametape.core.segments import Segment
from gametape.train.aims import Aim, aim_at
from gametape.train.batch import Batch, Line
from gametape.train.chunked import span_logits
from gametape.train.distilling import Teacher
from gametape.train.forward import forward, head_of
from gametape.train.learner import Learner
from gametape.train.lines import chosen_in
from gametape.train.policy import Policy, make_tiny, open_policy


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    place = tmp_path_factory.mktemp("tiny") / "start"
    make_tiny(place, TinyConfig(layers=2, width=32, heads=2, window=256), seed=3)
    return open_policy(place)


def segment(length: int, seed: int) -> Segment:
    """Three turns of four chosen tokens each, at 10, 20 and 30."""
    ids = torch.randint(0, 150, (length,), generator=torch.Generator().manual_seed(seed)).tolist()
    steps = [0] * length
    for step, start in enumerate((10, 20, 30), start=1):
        steps[start : start + 4] = [step] * 4
    mask = [int(step > 0) for step in steps]
    versions = [0 if bit else -1 for bit in mask]
    return Segment(ids, mask, [-3.0 * bit for bit in mask], versions, steps)


AIM = Aim(start=20, length=4, cut=19, inserted=(5, 6, 7, 8), kind="k", text="t", rollout="r", step=2)


def config(**ttf: Any) -> RunConfig:
    return RunConfig(arm="rlvr_ttf", tasks="worlds:easy", ttf=TTFConfig(anchor=0.0, **ttf))


def lines(*advantages: float, aim: Aim = AIM) -> list[Line]:
    return [Line(segment(36, seed), seed, value, aims=(aim,)) for seed, value in enumerate(advantages)]


def test_the_branch_beside_its_line_reads_what_a_line_of_its_own_would(policy: Policy) -> None:
    beside, apart = Teacher(policy.network, TTFConfig(teacher="current")), Teacher(policy.network, TTFConfig())
    chosen = chosen_in(lines(0.5, -0.5), branches=True)
    hidden_NE, head_VE = forward(policy.network, chosen.packed), head_of(policy.network)
    packed = beside.read(chosen.spans, hidden_NE, head_VE, 1.0)
    separate = apart.read(chosen_in(lines(0.5, -0.5)).spans, hidden_NE, head_VE, 1.0)
    assert (packed.tokens, separate.tokens) == (2 * (4 + 4), 2 * (19 + 4 + 4 + 5))
    for one, other in zip([*packed.hinted, *packed.plain], [*separate.hinted, *separate.plain], strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
    plain = policy.network(torch.tensor([[*segment(36, 0).ids[:19], 5, 6, 7, 8, *segment(36, 0).ids[20:24]]])).logits
    torch.testing.assert_close(packed.hinted[0], plain[0, 22:26], atol=1e-5, rtol=1e-5)


def test_a_hint_may_lie_in_what_lines_share(policy: Policy) -> None:
    """Two lines of one group that say the same, the second with an early target."""
    family = [
        Line(segment(36, 1), 7, 0.5),
        Line(segment(36, 1), 7, -0.5, aims=(replace(AIM, start=10, cut=6, step=1),)),
    ]
    chosen = chosen_in(family, branches=True)
    hidden_NE, head_VE = forward(policy.network, chosen.packed), head_of(policy.network)
    ids = segment(36, 1).ids
    plain = policy.network(torch.tensor([[*ids[:6], 5, 6, 7, 8, *ids[10:14]]])).logits
    reading = Teacher(policy.network, TTFConfig(teacher="current")).read(chosen.spans, hidden_NE, head_VE, 1.0)
    (teacher_SV,) = reading.hinted
    torch.testing.assert_close(teacher_SV, plain[0, 9:13], atol=1e-5, rtol=1e-5)
    student_SV = span_logits(hidden_NE[chosen.spans[0].rows_S], head_VE)
    torch.testing.assert_close(student_SV, policy.network(torch.tensor([ids])).logits[0, 9:13], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("teacher", ["current", "ema", "start"])
def test_a_rollout_without_an_advantage_still_carries_its_targets(policy: Policy, teacher: str) -> None:
    before = {name: tensor.clone() for name, tensor in policy.weights().items()}
    update = Learner(policy, config(teacher=teacher)).update(Batch(tuple(lines(0.0)), rollouts=4), 0, 0)
    assert (update.targets, update.ttf is not None, update.lines) == (1, True, 1)
    assert any(not torch.equal(tensor, before[name]) for name, tensor in policy.weights().items())
    policy.take(before)


def test_a_current_teacher_that_reads_no_hint_teaches_exactly_nothing(policy: Policy) -> None:
    before = {name: tensor.clone() for name, tensor in policy.weights().items()}
    unhinted = replace(AIM, cut=20, inserted=())
    learner = Learner(policy, config(teacher="current"))
    update = learner.update(Batch(tuple(lines(0.0, aim=unhinted)), rollouts=4), 0, 0)
    assert update.gradient == pytest.approx(0.0, abs=1e-6)
    assert max(learner.distilled[0].kl) == pytest.approx(0.0, abs=1e-6)
    policy.take(before)


def test_only_the_span_pulls(policy: Policy) -> None:
    """The gradient at the last hidden states is zero in every row but those that predict the span."""
    learner = Learner(policy, config(teacher="start"))
    chosen = chosen_in(lines(0.0))
    ends = (
        forward(policy.network, chosen.packed).detach().requires_grad_(),
        head_of(policy.network).detach().requires_grad_(),
    )
    from gametape.train.learner import _Sums

    grads = learner._ttf_grads(chosen, ends, Batch(tuple(lines(0.0)), rollouts=4), _Sums())
    assert grads[0] is not None
    touched = grads[0].abs().sum(-1).nonzero().flatten().tolist()
    assert touched == chosen.spans[0].rows_S.tolist() == [19, 20, 21, 22]


def test_portions_without_a_target_leave_the_cap_to_those_that_have_one(policy: Policy) -> None:
    """An advantage too small to matter puts a line beside the target, in the same portion or in one of its own."""
    before = {name: tensor.clone() for name, tensor in policy.weights().items()}
    beside = Line(segment(36, 8), 8, advantage=1e-15)
    batch = Batch((*lines(0.0), beside), rollouts=4)
    norms = []
    for portion in (16384, 36):
        capped = config(clip_norm=1e-6).model_copy(update={"optim": OptimConfig(portion=portion)})
        norms.append(Learner(policy, capped).update(batch, 0, 0).gradient)
        policy.take(before)
    assert norms[0] == pytest.approx(norms[1], rel=1e-3)
    assert norms[0] != 0.0


def test_an_aim_finds_the_turn_and_where_the_hint_goes_in() -> None:
    own = segment(36, 4)
    hinted = [*own.ids[:18], 90, 91, *own.ids[18:20]]
    number, aim = aim_at([own], 2, hinted, "kind", "text")
    assert (number, aim.start, aim.length, aim.cut) == (0, 20, 4, 18)
    assert [*own.ids[: aim.cut], *aim.branch(own)] == [*hinted, *own.ids[20:24]]
    with pytest.raises(ValueError, match="step 9"):
        aim_at([own], 9, hinted, "", "")


def test_the_slow_teacher_follows_and_its_weights_come_back(policy: Policy) -> None:
    teacher = Teacher(policy.network, TTFConfig(teacher="ema", ema=0.5))
    other = Teacher(policy.network, TTFConfig(teacher="ema", ema=0.5))
    with torch.no_grad():
        before = policy.network.lm_head.weight.clone()
        policy.network.lm_head.weight.add_(1.0)
    teacher.follow(policy.network)
    torch.testing.assert_close(teacher.tensors()["model.embed_tokens.weight"], before + 0.5)
    other.load(teacher.tensors())
    assert torch.equal(other.tensors()["model.embed_tokens.weight"], teacher.tensors()["model.embed_tokens.weight"])
    with torch.no_grad():
        policy.network.lm_head.weight.sub_(1.0)
