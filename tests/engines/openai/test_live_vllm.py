"""The real thing: vLLM on the CPU with a real model. `scripts/setup-vllm.sh` makes the venv this looks for."""

import asyncio
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gametape.core.messages import Sampling
from gametape.core.tokens import ContextTokens, TurnTokens, is_append_only
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.openai import ServerModel, open_server_model

pytestmark = pytest.mark.slow

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gametape"
DATA = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "gametape"
VENV = Path(os.environ.get("GAMETAPE_VLLM") or CACHE / "vllm")
HOME = Path(os.environ.get("GAMETAPE_HOME") or DATA)
WEIGHTS = Path(os.environ.get("GAMETAPE_SMOLLM2") or HOME / "models" / "smollm2")
START_SECONDS = 420
TOOL: dict[str, Any] = {
    "name": "read",
    "description": "Read a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerModel]:
    if not (VENV / ".ready").exists():
        pytest.skip(f"no vLLM at {VENV}: run scripts/setup-vllm.sh")
    if not (WEIGHTS / "model.safetensors").exists():
        pytest.skip(f"no weights at {WEIGHTS}: run gametape models fetch smollm2")
    port = _free_port()
    log = tmp_path_factory.mktemp("vllm") / "log"
    quiet = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "VLLM_HOST_IP": "127.0.0.1"}
    small = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
    command = f"""{VENV}/bin/python -m vllm.entrypoints.openai.api_server --model {WEIGHTS}
        --served-model-name smollm2 --host 127.0.0.1 --port {port} --dtype float32 --enforce-eager
        --max-model-len 2048 --max-num-seqs 4 --logprobs-mode processed_logprobs --enable-prompt-tokens-details"""
    with log.open("wb") as output:
        server = subprocess.Popen(command.split(), stdout=output, stderr=output, env=os.environ | quiet | small)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", server, log)
        yield open_server_model(f"openai:smollm2@http://127.0.0.1:{port}/v1", EgressPolicy(local_only=True))
    finally:
        server.terminate()
        server.wait(60)


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
    weights = transformers.AutoModelForCausalLM.from_pretrained(WEIGHTS, dtype=torch.float32).eval()
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


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if httpx.get(url, trust_env=False, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(1)
    pytest.fail(f"vLLM did not start:\n{log.read_text(errors='replace')[-3000:]}")
