"""A network that computes in another dtype than its weights have, and is as one whose weights have it."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch import nn  # noqa: E402

from gametape.train.lora import Adapters  # noqa: E402
from gametape.train.narrow_layers import narrow_layers  # noqa: E402
from gametape.train.packing import pack_nodes  # noqa: E402
from gametape.train.policy_module import PolicyModule  # noqa: E402

from ..engines.torch.networks import network  # noqa: E402
from .trees import GROUP  # noqa: E402


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_it_computes_as_one_of_that_dtype_and_its_gradients_have_the_weights_own(family):
    packed, found = pack_nodes(GROUP), []
    for wide in (False, True):
        module = PolicyModule(network(family).requires_grad_())
        if wide:
            module.network.double()
            assert module.place_whole("cpu", torch.float32)
        outputs = module(packed)
        assert outputs.hidden_NE.dtype == outputs.head_VE.dtype == torch.float32
        logits = outputs.hidden_NE[: packed.gradient_rows] @ outputs.head_VE.t()
        (logits * torch.sin(torch.arange(logits.numel()).view_as(logits).float())).sum().backward()
        found.append({name: one.grad for name, one in module.network.named_parameters()})
    for name, gradient in found[1].items():
        assert gradient.dtype == torch.float64
        assert float((gradient - found[0][name]).norm() / gradient.norm()) < 1e-5, name


def test_adapters_compute_in_it_too():
    module = network("llama").double()
    adapters = Adapters(module, 2, 4.0, seed=0)
    assert narrow_layers(module, torch.float32)
    assert PolicyModule(module, adapters)(pack_nodes(GROUP)).hidden_NE.dtype == torch.float32


def test_parts_that_nobody_knows_are_refused_untouched():
    network = nn.Sequential(nn.Linear(4, 4), nn.Conv1d(4, 4, 1))
    assert not narrow_layers(network, torch.bfloat16)
    assert type(network[0]) is nn.Linear
