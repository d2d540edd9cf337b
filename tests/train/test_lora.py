"""Adapters: what they begin as, what is saved of them, and that peft reads it."""

from pathlib import Path

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from gametape.core.config import LoraConfig, OptimConfig, RunConfig, TinyConfig, TTFConfig
from gametape.train.learner import LocalLearner
from gametape.train.policy import TrainablePolicy, create_tiny_policy, load_policy
from tests.train.saved import save_checkpoint
from tests.train.sharded.families import batch_of

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]])


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tiny") / "start"
    create_tiny_policy(directory, TinyConfig(layers=2, width=32, heads=2, window=128), seed=3)
    return directory


def config(teacher: str = "ema") -> RunConfig:
    return RunConfig(
        arm="rlvr_ttf",
        tasks="worlds:easy",
        optim=OptimConfig(learning_rate=1e-2),
        lora=LoraConfig(rank=4, alpha=8.0),
        ttf=TTFConfig(teacher=teacher),
    )


def adapted(start: Path) -> TrainablePolicy:
    policy = load_policy(start)
    policy.adapt(LoraConfig(rank=4, alpha=8.0), seed=0)
    return policy


def logits(network: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return network(IDS).logits


def test_at_first_the_policy_is_the_start(start: Path) -> None:
    plain, policy = load_policy(start), adapted(start)
    assert torch.equal(logits(policy.network), logits(plain.network))
    assert all(torch.equal(tensor, plain.weights()[name]) for name, tensor in policy.weights().items())
    learned = {name.rpartition(".lora_")[1] for name, one in policy.network.named_parameters() if one.requires_grad}
    assert learned == {".lora_"}


def test_peft_reads_what_is_saved_and_the_model_has_it_merged(start: Path, tmp_path: Path) -> None:
    policy = adapted(start)
    learner = LocalLearner(policy, config())
    for step in range(3):
        learner.update(batch_of(), step, step)
    saved = save_checkpoint(tmp_path, 1, learner)
    own = logits(policy.network)
    base = AutoModelForCausalLM.from_pretrained(start)
    assert (own - logits(base)).abs().max() > 0.05
    torch.testing.assert_close(logits(PeftModel.from_pretrained(base, saved / "adapter")), own, atol=1e-5, rtol=1e-5)
    merged = AutoModelForCausalLM.from_pretrained(saved / "model")
    torch.testing.assert_close(logits(merged), own, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("teacher", ["ema", "start", "current"])
def test_a_resumed_run_goes_on_to_the_bit(start: Path, tmp_path: Path, teacher: str) -> None:
    through, before = (LocalLearner(adapted(start), config(teacher)) for _ in range(2))
    for learner in (through, before):
        learner.update(batch_of(), 0, 0)
    after = LocalLearner(adapted(start), config(teacher))
    after.load(save_checkpoint(tmp_path, 1, before))
    for learner in (through, after):
        learner.update(batch_of(1), 1, 1)
    expected = through.policy.weights()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in after.policy.weights().items())
    assert any(not torch.equal(tensor, before.policy.weights()[name]) for name, tensor in expected.items())


def test_the_sampler_has_the_adapter_in_its_weights(start: Path) -> None:
    policy = adapted(start)
    learner = LocalLearner(policy, config())
    policy.sampler()
    learner.update(batch_of(), 0, 0)
    learner.publish()
    torch.testing.assert_close(logits(policy.sampler_network), logits(policy.network), atol=1e-5, rtol=1e-5)
