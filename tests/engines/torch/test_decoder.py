"""Our forward pass is transformers' forward pass, over the same parameters."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import GPT2Config, LlamaConfig, MistralConfig, Qwen2Config  # noqa: E402

from gametape.engines.torch.attention import cpu, reference  # noqa: E402
from gametape.engines.torch.attention.interface import SequenceSpan  # noqa: E402
from gametape.engines.torch.decoder import Decoder  # noqa: E402
from gametape.engines.torch.decoder_spec import read_decoder_spec  # noqa: E402
from gametape.engines.torch.kv_blocks import BlockPool  # noqa: E402

from .networks import FAMILIES, copy_of, network, plain_logits  # noqa: E402

IDS = [(7 * at) % 97 for at in range(150)]


def read(decoder, planner=cpu.plan):
    pool = BlockPool(decoder.spec, 12, 16, decoder.device, decoder.dtype)
    blocks = pool.allocate(10)
    with torch.inference_mode():
        attend = planner(pool, [SequenceSpan(0, len(IDS), 0, blocks)])
        hidden = decoder.forward(torch.tensor(IDS), torch.arange(len(IDS)), attend)
        return decoder.logits(hidden)


@pytest.mark.parametrize("planner", [cpu.plan, reference.plan])
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_the_module(family, planner):
    module = network(family)
    expected = plain_logits(copy_of(module), IDS)
    torch.testing.assert_close(
        read(Decoder(module, read_decoder_spec(module.config)), planner), expected, atol=1e-4, rtol=0
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_the_module_still_computes_the_same_and_can_be_saved(family, tmp_path):
    module = network(family)
    before = plain_logits(module, IDS)
    Decoder(module, read_decoder_spec(module.config))
    torch.testing.assert_close(plain_logits(module, IDS), before)
    module.save_pretrained(tmp_path)
    again = type(module).from_pretrained(tmp_path)
    torch.testing.assert_close(plain_logits(again, IDS), before)


@pytest.mark.parametrize("family", ["llama-tied", "llama-biased", "qwen3"])
def test_an_optimisers_step_is_seen_without_a_copy(family):
    module = network(family)
    decoder = Decoder(module, read_decoder_spec(module.config))
    module.requires_grad_(True)
    optimiser = torch.optim.AdamW(module.parameters(), lr=0.05)
    module(torch.tensor([IDS]), labels=torch.tensor([IDS])).loss.backward()
    optimiser.step()
    decoder.refresh()
    torch.testing.assert_close(read(decoder), plain_logits(module, IDS), atol=1e-4, rtol=0)
    module.double()
    assert not decoder.shares_parameters
    with pytest.raises(RuntimeError, match="moved"):
        decoder.refresh()


@pytest.mark.parametrize(
    "config",
    [
        GPT2Config(),
        MistralConfig(sliding_window=64),
        LlamaConfig(hidden_act="gelu"),
        LlamaConfig(rope_parameters={"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}),
        Qwen2Config(use_sliding_window=True, sliding_window=64, max_window_layers=2),
    ],
)
def test_other_families_are_not_claimed(config):
    assert read_decoder_spec(config) is None
