"""Spans as a real receiver gets them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from gametape.core.errors import GametapeError
from gametape.core.trajectory import Trajectory
from gametape.watch.otel_export import export_traces

TRAJECTORY: dict[str, Any] = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s",
    "trajectory_id": "t",
    "agent": {"name": "gametape", "version": "1", "model_name": "small"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "secret words", "timestamp": "2026-01-01T00:00:00+00:00"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "secret words",
            "timestamp": "2026-01-01T00:00:03+00:00",
            "tool_calls": [{"tool_call_id": "c", "function_name": "shell", "arguments": {"command": "secret words"}}],
            "observation": {"results": [{"source_call_id": "c", "content": "", "extra": {"failed": True}}]},
            "metrics": {"prompt_tokens": 70, "completion_tokens": 7},
        },
    ],
    "extra": {"outcome": "passed"},
}


@pytest.fixture
def receiver() -> Iterator[tuple[str, IO[str]]]:
    command = [sys.executable, str(Path(__file__).parent / "receiver.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}", process.stdout
        process.terminate()


def test_a_receiver_gets_agent_turns_and_calls(receiver: tuple[str, IO[str]]) -> None:
    url, told = receiver
    assert export_traces([Trajectory.model_validate(TRAJECTORY)], url) == 3
    lines = [told.readline() for _ in range(3)]
    agent, chat, tool = map(json.loads, lines)
    assert [span["name"] for span in (agent, chat, tool)] == [
        "invoke_agent gametape",
        "chat small",
        "execute_tool shell",
    ]
    assert {span["trace"] for span in (agent, chat, tool)} == {agent["trace"]}
    assert (agent["parent"], chat["parent"], tool["parent"]) == ("", agent["span"], agent["span"])
    assert agent["attributes"]["gen_ai.conversation.id"] == "s"
    assert chat["attributes"]["gen_ai.operation.name"] == "chat"
    assert chat["attributes"]["gen_ai.usage.input_tokens"] == 70
    assert chat["attributes"]["gen_ai.usage.output_tokens"] == 7
    assert chat["nanoseconds"] == 3_000_000_000
    assert tool["attributes"]["gen_ai.tool.call.id"] == "c"
    assert tool["status"] == 2
    assert "secret" not in "".join(lines)


def test_an_address_that_is_none_is_named() -> None:
    with pytest.raises(GametapeError, match="expected the http"):
        export_traces([], "ftp://127.0.0.1")
