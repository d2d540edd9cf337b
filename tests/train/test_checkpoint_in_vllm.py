"""A run's checkpoint, loaded as it lies on disk by transformers, by the engine and by vLLM, says what the weights that
were saved say."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from transformers import AutoModelForCausalLM

from gametape.core.config import OptimConfig, RunConfig
from gametape.core.token_segments import TokenSegment
from gametape.train.batch import TrainBatch, TrainSample
from gametape.train.learner import LocalLearner
from gametape.train.policy import load_policy
from tests.train.saved import save_checkpoint
from tests.vllm_server import SMOLLM2, require_vllm, serve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow


def test_a_checkpoint_is_loaded_as_it_lies_there(tmp_path: Path) -> None:
    require_vllm()
    policy = load_policy(SMOLLM2)
    ids = policy.chat_format.tokenizer.encode("The quick brown fox jumps over the lazy dog, and then it sleeps.")
    optim = OptimConfig(learning_rate=1e-4, warmup=0)
    learner = LocalLearner(policy, RunConfig(arm="rlvr", model="smollm2", tasks="worlds:easy", optim=optim))
    size = len(ids)
    segment = TokenSegment(ids, [0, *([1] * (size - 1))], [-2.0] * size, [0] * size, [1] * size)
    before = logprobs(policy.network, ids)
    learner.update(TrainBatch((TrainSample(segment, 0, advantage=1.0),), rollouts=1), 0, 0)
    saved = save_checkpoint(tmp_path / "checkpoints", 1, learner)
    expected = logprobs(policy.network, ids)
    assert expected != pytest.approx(before, abs=0.1), "what was saved would not be told from what was loaded"
    told = {"transformers": logprobs(AutoModelForCausalLM.from_pretrained(saved / "model"), ids)}
    told["engine"] = asyncio.run(engine_logprobs(saved / "model", ids))
    with serve(saved / "model", tmp_path / "log", "policy") as url:
        body = {"model": "policy", "prompt": ids, "max_tokens": 1, "prompt_logprobs": 0, "temperature": 0}
        answer = httpx.post(f"{url}/v1/completions", json=body, trust_env=False, timeout=120).json()
    scored = answer["choices"][0]["prompt_logprobs"][1:]
    told["vllm"] = [place[str(token)]["logprob"] for place, token in zip(scored, ids[1:], strict=True)]
    for loader, logps in told.items():
        print(loader, max(abs(one - other) for one, other in zip(logps, expected, strict=True)))
        assert logps == pytest.approx(expected, abs=1e-3), loader


def logprobs(network: Any, ids: list[int]) -> list[float]:
    """Of each token but the first, given those before."""
    with torch.no_grad():
        logs_TV = network(torch.tensor([ids])).logits[0].log_softmax(-1)
    return [float(logs_TV[at - 1, ids[at]]) for at in range(1, len(ids))]


async def engine_logprobs(weights: Path, ids: list[int]) -> list[float]:
    model = load_policy(weights).sampler(threaded=True)
    scores = await model.engine.score(ids)
    await model.close()
    assert scores is not None
    return list(scores)
