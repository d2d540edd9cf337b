"""Optimisers, learning rate schedules and bounds on gradients."""

import math

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from gametape.core.errors import BadInput  # noqa: E402
from gametape.train.optim import (  # noqa: E402  # noqa: E402
    Muon,
    clip_grad_norm,
    make_optimizer,
    orthogonalise,
    schedule_factor,
    warmup_factor,
)


def network(tied=False):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=40,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        tie_word_embeddings=tied,
    )
    return transformers.LlamaForCausalLM(config)


def train(model, optimizer, steps):
    for step in steps:
        ids = torch.randint(40, (2, 6), generator=torch.Generator().manual_seed(step))
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step(schedule_factor("cosine", step / 10) * warmup_factor(step, 2))
        optimizer.clear()


@pytest.mark.parametrize("method", ["adamw", "muon"])
def test_a_saved_optimizer_goes_on_to_the_bit(method, tmp_path):
    through, stopped = network(), network()
    train(through, make_optimizer(through, method, 0.01, 0.1), range(8))
    first = make_optimizer(stopped, method, 0.01, 0.1)
    train(stopped, first, range(5))
    safetensors.save_file(first.tensors(), tmp_path / "optimizer.safetensors")
    second = make_optimizer(stopped, method, 0.01, 0.1)
    saved = safetensors.load_file(tmp_path / "optimizer.safetensors")
    for name, room in second.room_for({name: tensor.shape for name, tensor in saved.items()}).items():
        room.copy_(saved[name])
    train(stopped, second, range(5, 8))
    for name, value in through.state_dict().items():
        assert torch.equal(value, stopped.state_dict()[name]), name


@pytest.mark.parametrize("tied", [False, True])
def test_muon_is_for_the_matrices_between_layers(tied):
    model = network(tied)
    optimizer = make_optimizer(model, "muon")
    train(model, optimizer, range(1))
    by_muon = {name.removesuffix(".momentum") for name in optimizer.tensors() if name.endswith(".momentum")}
    kinds = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    assert {name.split(".")[-2] for name in by_muon} == set(kinds)
    by_adam = {name.removesuffix(".exp_avg") for name in optimizer.tensors() if name.endswith(".exp_avg")}
    assert by_muon | by_adam == {name for name, _ in model.named_parameters()}
    assert not by_muon & by_adam


def test_frozen_parameters_and_vectors():
    """What takes no gradient does not move; norms do not decay."""
    model = network()
    model.lm_head.weight.requires_grad_(False)
    head, norm, key = (p.detach().clone() for p in (model.lm_head.weight, model.model.norm.weight, _key(model)))
    optimizer = make_optimizer(model, learning_rate=0.1, weight_decay=0.5)
    for param in model.parameters():
        param.grad = torch.zeros_like(param)
    optimizer.step(0.5)
    assert torch.equal(model.lm_head.weight, head)
    assert torch.equal(model.model.norm.weight, norm)
    torch.testing.assert_close(_key(model).detach(), key * (1 - 0.1 * 0.5 * 0.5))


def _key(model):
    return model.model.layers[0].self_attn.k_proj.weight


def test_a_state_of_another_network_is_refused():
    model = network()
    optimizer = make_optimizer(model)
    train(model, optimizer, range(1))
    state = {name: tensor.shape for name, tensor in optimizer.tensors().items()}
    with pytest.raises(BadInput, match="another network"):
        optimizer.room_for(state | {"elsewhere.weight.exp_avg": torch.Size([1])})
    with pytest.raises(BadInput, match=r"model\.norm\.weight\.exp_avg is \[3\], not \[16\]"):
        optimizer.room_for(state | {"model.norm.weight.exp_avg": torch.Size([3])})


def matrix(seed, rows, columns, smallest, scale=1.0):
    """With singular values spread evenly, in their logarithm, from 1 down to the smallest."""
    rng = torch.Generator().manual_seed(seed)
    u, _, vh = torch.linalg.svd(torch.randn(rows, columns, generator=rng, dtype=torch.float64), full_matrices=False)
    values = torch.logspace(0, float(torch.tensor(smallest).log10()), min(rows, columns), dtype=torch.float64)
    return scale * u * values @ vh, u @ vh


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 40), st.sampled_from([1e-4, 1.0, 1e4]))
def test_it_is_the_orthogonal_factor(seed, rows, columns, scale):
    given_, expected = matrix(seed, rows, columns, 0.02, scale)
    torch.testing.assert_close(orthogonalise(given_.float()).double(), expected, rtol=0, atol=0.01)


def test_small_directions_are_lifted():
    given_, expected = matrix(1, 24, 64, 1e-3)
    torch.testing.assert_close(orthogonalise(given_.float()).double(), expected, rtol=0, atol=0.05)


def test_nothing_stays_nothing():
    assert (orthogonalise(torch.zeros(3, 4)) == 0).all()


def test_an_update_has_the_size_of_one_of_adamw():
    """And follows momentum: the second step leans on the first."""
    param = torch.nn.Parameter(torch.zeros(16, 48))
    first, _ = matrix(2, 16, 48, 0.1)
    muon = Muon([param], lr=0.01)
    param.grad = first.float()
    muon.step()
    assert param.pow(2).mean().sqrt().item() == pytest.approx(0.01 * 0.2, rel=0.02)
    assert (param * first).sum() < 0
    before = param.detach().clone()
    second, _ = matrix(3, 16, 48, 0.1)
    param.grad = second.float()
    muon.step()
    momentum = 0.95 * (0.05 * first) + 0.05 * second
    expected, _, vh = torch.linalg.svd(0.05 * second + 0.95 * momentum, full_matrices=False)
    moved = (param.detach() - before).double() / (-0.01 * 0.2 * 48**0.5)
    torch.testing.assert_close(moved, expected @ vh, rtol=0, atol=0.02)


def test_decay_is_apart_from_the_gradient():
    param = torch.nn.Parameter(torch.ones(4, 4))
    param.grad = torch.zeros(4, 4)
    Muon([param], lr=0.1, weight_decay=0.5).step()
    torch.testing.assert_close(param.detach(), torch.full((4, 4), 0.95))


def test_vectors_are_refused():
    with pytest.raises(ValueError, match="matrices"):
        Muon([torch.nn.Parameter(torch.zeros(4))], lr=0.1)


def factors(schedule, steps):
    return [schedule_factor(schedule, step / steps) for step in range(steps + 2)]


def test_each_schedule():
    assert factors("constant", 3) == [1, 1, 1, 1, 1]
    assert factors("linear", 4) == [1, 0.75, 0.5, 0.25, 0, 0]
    assert factors("cosine", 4) == pytest.approx([1, 0.853553, 0.5, 0.146447, 0, 0], abs=1e-5)


def test_the_first_updates_are_smaller():
    assert [warmup_factor(step, 1) for step in range(3)] == [0.5, 1, 1]
    assert [warmup_factor(step, 2) for step in range(4)] == pytest.approx([1 / 3, 2 / 3, 1, 1])
    assert warmup_factor(0, 0) == 1


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_no_step_of_a_run_stands_still(schedule):
    for warmup in (0, 1, 9, 10, 30):
        rates = [factor * warmup_factor(step, warmup) for step, factor in enumerate(factors(schedule, 10)[:10])]
        assert all(0 < factor <= 1 for factor in rates)


def test_gradients_are_scaled_together():
    gradients = [torch.tensor([3.0, 0.0]), None, torch.tensor([[4.0]])]
    assert clip_grad_norm(gradients).value == 5.0
    assert not clip_grad_norm(gradients, 5.0).scaled
    norm = clip_grad_norm(gradients, 1.0)
    assert (norm.value, norm.scaled, norm.finite) == (5.0, True, True)
    torch.testing.assert_close(gradients[0], torch.tensor([0.6, 0.0]))
    torch.testing.assert_close(gradients[2], torch.tensor([[0.8]]))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_told_and_left(bad):
    gradients = [torch.tensor([3.0, bad]), torch.tensor([4.0])]
    norm = clip_grad_norm(gradients, 1.0)
    assert not norm.finite
    assert not norm.scaled
    assert gradients[1].item() == 4.0


def test_no_gradient_at_all():
    assert clip_grad_norm([None], 1.0).value == 0
    with pytest.raises(ValueError, match="above 0"):
        clip_grad_norm([], 0.0)
