"""A rollout with a server that does not report its window, and refuses what does not fit into it in its own words."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.openai import open_server_model
from gametape.engines.retry import RetryingModel, RetryPolicy
from tests.agent.bench import bench
from tests.engines.servers.openai_server import OpenAIServer
from tests.engines.servers.scripted import HTTPFault, Request, ScriptedCall, Turn

WINDOW = 9_500
LOUD = "for i in $(seq 400); do echo line $i of some long and boring output; done"
NO_USAGE = {"unknown": 0}


def vllm(prompt: int, asked: int) -> dict[str, Any] | None:
    length = f"This model's maximum context length is {WINDOW} tokens"
    if prompt > WINDOW:
        return {"message": f"{length}. However, your request has {prompt} input tokens.", "code": 400}
    if prompt + asked > WINDOW:
        large = f"'max_tokens' or 'max_completion_tokens' is too large: {asked}."
        return {
            "message": f"{large} {length} and your request has {prompt} input tokens ({asked} > {WINDOW} - {prompt}).",
            "code": 400,
        }
    return None


def llama_cpp(prompt: int, _asked: int) -> dict[str, Any] | None:
    said = f"request ({prompt} tokens) exceeds the available context size ({WINDOW} tokens), try increasing it"
    counts = {"n_prompt_tokens": prompt, "n_ctx": WINDOW}
    return {"code": 400, "message": said, "type": "exceed_context_size_error", **counts} if prompt > WINDOW else None


class WindowServer(OpenAIServer):
    """Counts a token for four characters, and says nothing of its window until it is too small."""

    def __init__(self, script: list[Turn], says: Any) -> None:
        super().__init__(script)
        self.says = says
        self.refused: list[dict[str, Any]] = []

    def refuse(self, request: Request) -> HTTPFault | None:
        body = request.body
        prompt = len(json.dumps([body["messages"], body.get("tools")])) // 4
        if error := self.says(prompt, body["max_tokens"]):
            self.refused.append(error)
            return HTTPFault(400, {"error": error})
        return super().refuse(request)


@pytest.mark.parametrize("says", [vllm, llama_cpp])
def test_work_goes_on_within_the_window_that_a_server_states(tmp_path: Path, says: Any) -> None:
    async def main(server: WindowServer) -> None:
        inner = open_server_model(f"openai:m@{server.url}", EgressPolicy(local_only=True))
        model = RetryingModel(inner, RetryPolicy(max_attempts=1))
        assert model.window > 2 * WINDOW
        async with bench(tmp_path, model=model) as (harness, start):
            rollout = await harness.begin(start)
            end = await rollout.run()
            events = [event for step in rollout.recorder.steps for event in step.gametape_extra.events or []]
            assert end.reason == "finished", events
            assert "compaction" in {event["kind"] for event in events}
            assert model.window == WINDOW
        await model.close()

    loud = [Turn("Again.", "", (ScriptedCall("shell", {"command": LOUD}, f"c{n}"),), NO_USAGE) for n in range(6)]
    done = Turn("Done.", "", (ScriptedCall("finish", {"summary": "done", "confidence": 1.0}, "f"),), NO_USAGE)
    with WindowServer([*loud, done], says) as server:
        asyncio.run(main(server))
    assert 1 <= len(server.refused) <= 2
