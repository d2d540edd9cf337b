"""A whole goal through the command line with each protocol: a real process, real HTTP, and what real servers do to one.

The servers are strict: a request that the real API would refuse is refused, so a goal that is reached was spoken well.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import gametape
from tests.desk.goals.shop import BY_EXIT_CODE, MENDED, lay
from tests.engines.servers import anthropic_server, openai_server
from tests.engines.servers.anthropic_server import AnthropicServer
from tests.engines.servers.openai_server import OpenAIServer
from tests.engines.servers.scripted import CutFault, HTTPFault, RawFault, Request, ScriptedCall, ScriptItem, Turn

KEY = "key-of-the-server"
LOOK = Turn(
    "I will look at both files.",
    "The total is wrong. I should read the code and its tests.",
    (
        ScriptedCall("read", {"path": "shop.py"}, "look_1"),
        ScriptedCall("read", {"path": "tests/test_shop.py"}, "look_2"),
    ),
)
MEND = Turn("", "One is added. I take it away.", (ScriptedCall("write", {"path": "shop.py", "content": MENDED}, "w"),))
DONE = Turn("Done.", "", (ScriptedCall("finish", {"summary": "mended", "confidence": 0.9}, "f"),))


def reach(tmp_path: Path, model: str, key: str = KEY) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run a goal; its answer, and the agent's steps on record."""
    workspace = lay(tmp_path / "workspace")
    words = ("goal", "run", "--workspace", workspace, "--success", BY_EXIT_CODE, "--model", model, "--json")
    environment = {**os.environ, "GAMETAPE_API_KEY": key, "OPENAI_API_KEY": "key-of-openai"}
    ran = gametape(*words, "--home", tmp_path / "home", env=environment)
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    trajectory = Path(answer["trajectory"]).read_text()
    for secret in (key, "key-of-openai"):
        assert secret not in trajectory + ran.stdout + ran.stderr
    return answer, [step for step in json.loads(trajectory)["steps"] if step["source"] == "agent"]


def extra(step: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = step["extra"]["gametape"]
    return found


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_a_goal_with_an_openai_server(tmp_path: Path, field: str) -> None:
    usage = {
        "prompt_tokens": 2000,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 1500},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    script: list[ScriptItem] = [
        openai_server.RATE_LIMITED,
        LOOK,
        CutFault(MEND, 4),
        Turn(MEND.text, MEND.reasoning, MEND.calls, usage),
        HTTPFault(500, {"error": {"message": "The server had an error", "type": "server_error"}}),
        DONE,
    ]
    refuses = {"max_tokens": openai_server.NO_MAX_TOKENS}
    with OpenAIServer(script, KEY, refuses, field) as server:
        answer, steps = reach(tmp_path, f"openai:gpt-x@{server.url}?input=2&output=8&cached=0.2&window=100000")
        requests = server.requests
    assert answer["reached"] is True
    assert [step["reasoning_content"] for step in steps[:2]] == [LOOK.reasoning, MEND.reasoning]
    assert [len(step["tool_calls"]) for step in steps] == [2, 1, 1]
    assert extra(steps[0])["warnings"] == ["max_tokens is sent as max_completion_tokens: the server wants it so"]
    assert [step["metrics"]["extra"]["attempts"] for step in steps] == [2, 2, 2]
    assert steps[1]["metrics"]["cached_tokens"] == 1500
    assert steps[1]["metrics"]["extra"]["reasoning_tokens"] == 30
    lost = steps[1]["metrics"]["completion_tokens"] - 50
    assert lost > 0
    assert steps[1]["metrics"]["cost_usd"] == pytest.approx((500 * 2 + 1500 * 0.2 + (50 + lost) * 8) / 1e6)
    last = requests[-1].body
    assert not {"temperature", "top_p", "max_tokens", "seed"} & set(last)
    assert [message[field] for message in last["messages"] if field in message] == [LOOK.reasoning, MEND.reasoning]
    assert [m["tool_call_id"] for m in last["messages"] if m["role"] == "tool"] == ["look_1", "look_2", "w"]


def test_a_goal_with_an_openai_server_that_takes_no_reasoning_back(tmp_path: Path) -> None:
    refuses = {"reasoning_content": "The reasoning_content is an intermediate result and should not be included."}
    with OpenAIServer([LOOK, MEND, DONE], KEY, refuses) as server:
        answer, steps = reach(tmp_path, f"gpt-x@{server.url}")
        last = server.requests[-1].body
    assert answer["reached"] is True
    assert steps[0]["reasoning_content"] == LOOK.reasoning
    assert "reasoning_content of earlier turns is not sent" in extra(steps[1])["warnings"][0]
    assert "warnings" not in extra(steps[2])
    assert all("reasoning_content" not in message for message in last["messages"])


@pytest.mark.parametrize("form", ["adaptive", "enabled"])
def test_a_goal_with_an_anthropic_server(tmp_path: Path, form: str) -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 1200, "cache_creation_input_tokens": 300}
    script: list[ScriptItem] = [
        anthropic_server.RATE_LIMITED,
        LOOK,
        anthropic_server.OVERLOADED,
        RawFault(MEND, 3, b'event: content_block_delta\ndata: {"type": "content_block_de\n\n'),
        Turn(MEND.text, MEND.reasoning, MEND.calls, usage | {"output_tokens": 70}),
        DONE,
    ]
    refuses = {"thinking.enabled": anthropic_server.NO_BUDGET} if form == "adaptive" else {}
    model = "claude-sonnet-4-5"  # asked to think by a budget of tokens, which the server may refuse
    with AnthropicServer(script, KEY, refuses, most_tokens=4096, redacts=True) as server:
        name = f"anthropic:{model}@{server.url}?input=3&output=15&cached=0.3&written=3.75&reasoning=medium"
        answer, steps = reach(tmp_path, name)
        requests = server.requests
    assert answer["reached"] is True
    assert [step["reasoning_content"] for step in steps[:2]] == [LOOK.reasoning, MEND.reasoning]
    assert [len(step["tool_calls"]) for step in steps] == [2, 1, 1]
    assert [step["metrics"]["extra"]["attempts"] for step in steps] == [2, 3, 1]
    assert (steps[1]["metrics"]["prompt_tokens"], steps[1]["metrics"]["cached_tokens"]) == (1510, 1200)
    assert steps[1]["metrics"]["extra"]["written_tokens"] == 300
    lost = steps[1]["metrics"]["completion_tokens"] - 70
    cost = (10 * 3 + 1200 * 0.3 + 300 * 3.75 + (70 + lost) * 15) / 1e6
    assert steps[1]["metrics"]["cost_usd"] == pytest.approx(cost)
    said = " ".join(extra(steps[0]).get("warnings", []))
    assert ("by effort" in said) == (form == "adaptive")
    last = requests[-1].body
    assert last["thinking"]["type"] == form
    assert ("output_config" in last) == (form == "adaptive")
    assert last["max_tokens"] <= 4096
    assert _marks(requests[-1]) == 4
    assert _thoughts(requests[-1]) == ["thinking", "redacted_thinking", "thinking", "redacted_thinking"]
    results = [block for block in last["messages"][2]["content"] if block["type"] == "tool_result"]
    assert [block["tool_use_id"] for block in results] == ["look_1", "look_2"]


def test_a_goal_with_an_anthropic_server_that_thinks_unasked(tmp_path: Path) -> None:
    with AnthropicServer([LOOK, MEND, DONE], KEY) as server:
        answer, steps = reach(tmp_path, f"anthropic:claude-sonnet-5@{server.url}")
        bodies = [request.body for request in server.requests]
    assert answer["reached"] is True
    assert all("thinking" not in body and "temperature" not in body for body in bodies)
    assert extra(steps[0])["reasoning_state"]["protocol"] == "anthropic"
    assert steps[0]["tool_calls"][0]["extra"] == {"server_id": "look_1"}


def _marks(request: Request) -> int:
    return json.dumps(request.body).count('"cache_control"')


def _thoughts(request: Request) -> list[str]:
    blocks = [block for message in request.body["messages"] for block in message["content"]]
    return [block["type"] for block in blocks if "thinking" in block["type"]]


@pytest.mark.parametrize(
    ("model", "environment", "code", "said"),
    [
        ("openai:gpt-5", {}, 3, "openai:gpt-5 needs a key: set $OPENAI_API_KEY"),
        ("anthropic:claude-x", {"GAMETAPE_API_KEY": "k"}, 3, "anthropic:claude-x needs a key: set $ANTHROPIC_API_KEY"),
        ("openrouter:a/b", {"OPENAI_API_KEY": "k"}, 3, "openrouter:a/b needs a key: set $OPENROUTER_API_KEY"),
        ("m@http://10.1.2.3/v1", {"GAMETAPE_API_KEY": "k3y"}, 2, "would be sent it in the clear"),
        ("openai:m@localhost:8000", {}, 2, "write PROVIDER:MODEL"),
        ("nothing:m", {}, 2, "no such model"),
    ],
)
def test_what_cannot_be_reached_is_one_line(
    tmp_path: Path, model: str, environment: dict[str, str], code: int, said: str
) -> None:
    workspace = lay(tmp_path / "workspace")
    keys = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    aim = ("goal", "run", "--workspace", workspace, "--success", BY_EXIT_CODE)
    words = (*aim, "--model", model, "--home", tmp_path / "h")
    ran = gametape(*words, env=keys | environment)
    assert ran.returncode == code, ran.stderr
    assert said in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
    assert "k3y" not in ran.stderr


def test_an_attempt_that_ends_for_want_of_room_says_so(tmp_path: Path) -> None:
    workspace = lay(tmp_path / "workspace")
    with OpenAIServer([LOOK], KEY) as server:
        model = f"openai:m@{server.url}?window=1200"
        aim = ("goal", "run", "--workspace", workspace, "--success", BY_EXIT_CODE)
        words = (*aim, "--model", model, "--attempts", "2")
        ran = gametape(*words, "--json", "--home", tmp_path / "home", env={**os.environ, "GAMETAPE_API_KEY": KEY})
    answer = json.loads(ran.stdout.splitlines()[-1])
    assert (ran.returncode, answer["reached"]) == (1, False), ran.stderr
    assert [warning.partition(":")[0] for warning in answer["warnings"]] == [
        "attempt 1 ended early",
        "attempt 2 ended early",
    ]
    record = json.loads(Path(answer["trajectory"]).read_text())
    events = [event for step in record["steps"] if "extra" in step for event in extra(step).get("events") or []]
    assert [event["kind"] for event in events] == ["context_full"] * 2
    assert all("the context is full" in line for line in (*answer["warnings"], events[0]["detail"]))
    shown = gametape("goal", "show", answer["goal_id"], "--home", tmp_path / "home")
    assert "attempt 2 ended early: the context is full" in " ".join(shown.stdout.split())
