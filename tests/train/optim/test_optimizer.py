"""What each optimiser is for, and that a saved one goes on to the bit."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

from gametape.core.errors import BadInput  # noqa: E402
from gametape.train.optim import make_optimizer, schedule_factor, warmup_factor  # noqa: E402


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
    second.load(safetensors.load_file(tmp_path / "optimizer.safetensors"))
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
    state = optimizer.tensors()
    with pytest.raises(BadInput, match="another network"):
        optimizer.load(state | {"elsewhere.weight.exp_avg": torch.zeros(1)})
    with pytest.raises(BadInput, match=r"model\.norm\.weight\.exp_avg is \[3\], not \[16\]"):
        optimizer.load(state | {"model.norm.weight.exp_avg": torch.zeros(3)})
