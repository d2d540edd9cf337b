"""A rollout with a model server that fails: what is asked again, what is recorded, what ends it."""

import asyncio
import json
from pathlib import Path

import pytest

from gametape.agent.rollout import Rollout
from gametape.engines.conversation import Model
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.openai import open_server_model
from gametape.engines.retry import Clock, RetryingModel, RetryPolicy
from gametape.engines.server.client import ServerLimits
from tests.agent.bench import bench
from tests.agent.test_rollout import trajectory
from tests.engines.openai.server import Cut, Fault, FaultServer, Hang, Raw, Said, Status

RUN = '```tool\n{"name": "shell", "arguments": {"command": "echo one >> log"}}\n```'
FINISH = '```tool\n{"name": "finish", "arguments": {"summary": "done", "confidence": 1.0}}\n```'
CALLS = [
    Said("I run it.", (("shell", json.dumps({"command": "echo one >> log"})),)),
    Said("Done.", (("finish", json.dumps({"summary": "done", "confidence": 1.0})),)),
]

PASSING: dict[str, tuple[Fault, str]] = {
    "time-out": (Hang(), "timeout"),
    "429": (Status(429, {"retry-after": "1"}), "rate_limited"),
    "500": (Status(500), "server_error"),
    "503": (Status(503), "server_error"),
    "cut stream": (Cut(1), "cut_stream"),
    "nonsense": (Raw(b"data: {nonsense\n\n"), "garbled"),
}


def opened(server: FaultServer, fault: Fault) -> Model:
    bounds = ServerLimits(idle_seconds=3.0) if isinstance(fault, Hang) else ServerLimits()
    inner = open_server_model(f"openai:test@{server.url}", EgressPolicy(local_only=True), limits=bounds)

    async def no_pause(_seconds: float) -> None:
        return None

    return RetryingModel(inner, RetryPolicy(max_attempts=3), clock=Clock(sleep=no_pause))


def engine_events(rollout: Rollout) -> list[str]:
    every = [event for step in rollout.recorder.steps for event in step.gametape_extra.events or []]
    return [event["detail"] for event in every if event["kind"] == "engine"]


@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("in_tokens", [True, False])
def test_trouble_that_passes_is_asked_again_recorded_and_charged(tmp_path: Path, fault: str, in_tokens: bool) -> None:
    failure, kind = PASSING[fault]

    async def main(server: FaultServer) -> None:
        model = opened(server, failure)
        assert model.trainable is in_tokens
        async with bench(tmp_path, model=model) as (harness, start):
            server.faults = [failure, failure, None, failure, None]
            rollout = await harness.begin(start)
            assert (await rollout.run()).reason == "finished"
            assert (await rollout.workspace.get("log")) == b"one\n"
            assert [kind in event for event in engine_events(rollout)] == [True] * 3
            turns = [step for step in rollout.recorder.steps if step.source == "agent"]
            assert [step.metrics.extra["attempts"] for step in turns] == [3, 2]
            assert trajectory(rollout).tokens_exact() is (True if in_tokens else None)
        await model.close()

    replies = [RUN, FINISH] if in_tokens else CALLS
    with FaultServer(replies=replies, token_mode=in_tokens, window=1 << 16) as server:
        asyncio.run(main(server))


@pytest.mark.parametrize("fault", [Status(401), Status(500), Hang()])
def test_a_server_that_stays_away_ends_the_rollout_with_everything_on_record(tmp_path: Path, fault: Fault) -> None:
    async def main(server: FaultServer) -> None:
        model = opened(server, fault)
        async with bench(tmp_path, model=model) as (harness, start):
            rollout = await harness.begin(start)
            await rollout.turn()
            server.faults = [fault] * 9
            over = await rollout.run()
            assert over.outcome == "error"
            last = rollout.recorder.steps[-1]
            assert last.source == "system"
            assert "did not answer" in str(last.message)
            assert engine_events(rollout)
            assert (await rollout.workspace.get("log")) == b"one\n"
            assert trajectory(rollout).tokens_exact() is True
        await model.close()

    with FaultServer(replies=[RUN], token_mode=True, window=1 << 16) as server:
        asyncio.run(main(server))
