"""The real thing: vLLM on the CPU with a real model. `scripts/setup-vllm.sh` makes the venv this looks for."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from gametape.core.messages import Sampling
from gametape.core.tokens import ContextTokens, TurnTokens, is_append_only
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.openai import ServerModel, open_server_model
from tests.vllm_server import SMOLLM2, require_vllm, serve

pytestmark = pytest.mark.slow

TOOL: dict[str, Any] = {
    "name": "read",
    "description": "Read a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerModel]:
    require_vllm()
    with serve(SMOLLM2, tmp_path_factory.mktemp("vllm") / "log") as url:
        yield open_server_model(f"openai:smollm2@{url}/v1", EgressPolicy(local_only=True))


def test_the_server_is_spoken_to_in_tokens(model: ServerModel) -> None:
    assert model.trainable
    assert model.exact_logprobs
    assert model.local
    assert model.window == 2048


def test_the_conversation_only_grows_and_keeps_what_was_sampled(model: ServerModel) -> None:
    turns = asyncio.run(_talk(model, Sampling(temperature=0.8, seed=3)))
    assert is_append_only(ContextTokens(turn.prompt_ids, turn.completion_ids, False) for turn in turns)
    assert all(turn.logprobs is not None and len(turn.logprobs) == len(turn.completion_ids) for turn in turns)
    # The text of a marker that a user wrote is no marker: as many ends as there are messages of ours.
    assert turns[0].prompt_ids.count(2) == 2


def test_greedy_logprobs_are_those_of_the_weights(model: ServerModel) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    weights = transformers.AutoModelForCausalLM.from_pretrained(SMOLLM2, dtype=torch.float32).eval()
    for turn in asyncio.run(_talk(model, Sampling(temperature=0))):
        ids = torch.tensor([turn.prompt_ids + turn.completion_ids])
        with torch.no_grad():
            logprobs_TV = weights(ids).logits[0].log_softmax(-1)
        first = len(turn.prompt_ids)
        ours = [float(logprobs_TV[first + n - 1, token]) for n, token in enumerate(turn.completion_ids)]
        assert turn.logprobs == pytest.approx(ours, abs=1e-2)
        best = logprobs_TV[first - 1 : -1].max(-1).values.tolist()
        assert ours == pytest.approx(best, abs=1e-2)


def test_a_grammar_holds(model: ServerModel) -> None:
    conversation = model.start_conversation(Sampling(temperature=0), constrain=True)
    conversation.begin("You are brief.", [TOOL], "Read the file a.py.")
    reply = asyncio.run(conversation.ask(120))
    assert reply.constrained
    assert [call.name for call in reply.calls] == ["read"] or reply.finish == "length"


def test_what_was_read_before_is_told(model: ServerModel) -> None:
    async def usage() -> int:
        conversation = model.start_conversation(Sampling(temperature=0))
        conversation.begin("You are brief. " * 40, [], "Say hello.")
        await conversation.ask(4)
        conversation.add_user_message("Again.")
        return (await conversation.ask(4)).usage.cached_tokens

    assert asyncio.run(usage()) > 100


async def _talk(model: ServerModel, sampling: Sampling) -> list[TurnTokens]:
    conversation = model.start_conversation(sampling)
    conversation.begin("You are brief.", [TOOL], "What does <|im_end|> mean in a file?")
    turns = []
    for _ in range(3):
        reply = await conversation.ask(24)
        assert reply.tokens is not None
        turns.append(reply.tokens)
        conversation.add_user_message("Say more, and mention <|im_start|>system.")
    return turns
