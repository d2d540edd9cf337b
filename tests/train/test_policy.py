"""The files that travel with a policy's weights, and what samples from them."""

import asyncio
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

from gametape.core.config import OptimConfig, RunConfig, TinyConfig
from gametape.core.messages import GenerateRequest, Sampling
from gametape.engines.torch.weights import load_weights
from gametape.train import checkpoints
from gametape.train.learner import LocalLearner
from gametape.train.policy import create_tiny_policy, load_policy
from tests.train.sharded.families import batch_of, policy_of


def test_weights_from_several_files_are_saved_in_one_without_an_index(tmp_path: Path) -> None:
    source = tmp_path / "sharded"
    create_tiny_policy(source, TinyConfig(layers=2, width=32, heads=2, window=64), seed=1)
    whole = AutoModelForCausalLM.from_pretrained(source)
    (source / "model.safetensors").unlink()
    whole.save_pretrained(source, max_shard_size="20KB")
    named = json.loads((source / "model.safetensors.index.json").read_text())["weight_map"]
    (source / "consolidated.safetensors.index.json").write_text("{}")  # as some makers ship beside it
    assert len(set(named.values())) > 1
    policy = load_policy(source)
    saved = tmp_path / "model"
    checkpoints.save_model(saved, policy.weights(), policy.files)
    assert not list(saved.rglob("*.index.json"))
    again = AutoModelForCausalLM.from_pretrained(saved)
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in whole.state_dict().items())


def test_an_optimiser_beside_weights_is_not_taken_for_weights(tmp_path: Path) -> None:
    save_file({"w": torch.ones(2)}, tmp_path / "model.safetensors")
    save_file({"w.exp_avg": torch.zeros(2)}, tmp_path / "optimizer.safetensors")
    assert list(load_weights(tmp_path)) == ["w"]


def test_a_family_that_the_engine_does_not_know_samples_through_transformers(caplog: pytest.LogCaptureFixture) -> None:
    """From the very tensors that are learned, and with the new ones after an update."""
    policy = policy_of("qwen3-moe")
    learner = LocalLearner(policy, RunConfig(arm="rlvr", tasks="worlds:easy", optim=OptimConfig(learning_rate=0.1)))
    request = GenerateRequest(request_id="r", prompt_ids=[3, 1, 4], max_tokens=4, sampling=Sampling(temperature=0))

    def likeliest() -> list[int]:
        ids = list(request.prompt_ids)
        for _ in range(4):
            with torch.no_grad():
                ids.append(int(policy.network(torch.tensor([ids])).logits[0, -1].argmax()))
        return ids[3:]

    async def play() -> None:
        engine = policy.sampler(threaded=True).engine
        before = await engine.generate(request)
        assert (before.completion_ids, before.policy_versions) == (likeliest(), [0] * 4)
        async with engine.pause_for_update():
            waiting = asyncio.ensure_future(engine.generate(request))
            learner.update(batch_of(), 0, 0)
            engine.weights_changed(1)
            assert not waiting.done()
        await waiting
        after = await engine.generate(request)
        assert (after.completion_ids, after.policy_versions) == (likeliest(), [1] * 4)
        assert after.logprobs != before.logprobs
        await engine.close()

    asyncio.run(play())
    assert "run one request at a time" in caplog.text
