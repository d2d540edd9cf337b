"""MCP servers in sandboxes of their own: a real one, and hostile ones written by hand."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from gametape.agent.tools.mcp import McpServer, attach_server
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import Tool, Workspace
from gametape.sandbox.keeper_client import SandboxError
from gametape.sandbox.policy import SandboxLimits, SandboxPolicy
from tests.patience import HANG

pytest.importorskip("mcp")

T = TypeVar("T")
POLICY = SandboxPolicy(limits=SandboxLimits(memory_mb=600, processes=60))
NOWHERE: Workspace = None  # type: ignore[assignment] - a server sees nothing of the agent's environment

REAL = """
from mcp.server import MCPServer
server = MCPServer("real")

@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

@server.tool()
def look(path: str) -> str:
    "Read a file."
    return open(path).read()

@server.tool()
def call_home() -> str:
    "Reach the network."
    import socket
    return repr(socket.create_connection(("127.0.0.1", 80), 1))

server.run("stdio")
"""

BY_HAND = """
import json, sys, time
TOOLS = [{"name": name, "description": text, "inputSchema": schema} for name, text, schema in %s]
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    method, number = asked.get("method"), asked.get("id")
    if method == "initialize":
        say(id=number, result={"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                               "serverInfo": {"name": "x", "version": "1"}})
    elif method == "tools/list":
        say(id=number, result={"tools": TOOLS})
    elif method == "tools/call":
        name = asked["params"]["name"]
        %s
"""


def with_tools(code: str, talk: Callable[[dict[str, Tool]], Awaitable[T]], **settings: Any) -> T:
    async def run() -> T:
        server = McpServer("s", (sys.executable, "-I", "-c", code), policy=POLICY, **settings)
        async with attach_server(server) as tools:
            return await talk({tool.name: tool for tool in tools})

    return asyncio.run(run())


def by_hand(act: str, tools: list[tuple[str, str, dict[str, Any]]] | None = None) -> str:
    return BY_HAND % (tools or [("t", "A tool.", {"type": "object"})], act)


def test_a_real_server_behind_its_own_wall() -> None:
    async def talk(tools: dict[str, Tool]) -> None:
        assert sorted(tools) == ["s.add", "s.call_home", "s.look"]
        definition = tools["s.add"].definition
        assert definition["description"] == "Add two numbers."
        assert definition["parameters"]["required"] == ["a", "b"]
        sums = await asyncio.gather(*(tools["s.add"].call({"a": 2, "b": n}, NOWHERE) for n in range(5)))
        assert [one.content for one in sums] == ["2", "3", "4", "5", "6"]
        wrong = await tools["s.add"].call({"a": "x"}, NOWHERE)
        assert wrong.failed
        secret = await tools["s.look"].call({"path": "/etc/shadow"}, NOWHERE)
        assert secret.failed
        home = await tools["s.call_home"].call({}, NOWHERE)
        assert home.failed

    with_tools(REAL, talk)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        ("time.sleep(60)", "s.t: no answer within 0.5 seconds"),
        ("sys.exit(3)", "s.t: the server has ended"),
        ("say(id=number, error={'code': -1, 'message': 'no \\x1b[31mluck'})", "s.t: no luck"),
        ("say(id=number, result={'content': 5})", "s.t: "),
        ("print('x' * 9_000_000, flush=True)", "s.t: the server has ended"),
        (
            "[say(method='notifications/message', params={'level': 'info', 'data': n}) for n in range(10**6)]",
            "s.t: the server",
        ),
    ],
)
def test_whatever_a_server_does_a_call_ends_in_an_answer(act: str, words: str) -> None:
    async def talk(tools: dict[str, Tool]) -> tuple[ToolResult, ToolResult]:
        return await tools["s.t"].call({}, NOWHERE), await tools["s.t"].call({}, NOWHERE)

    for result in with_tools(by_hand(act), talk, call_seconds=0.5 if "sleep" in act else HANG):
        assert result.failed
        assert result.content.startswith(words)
        assert "\x1b" not in result.content


def test_noise_between_messages_is_passed_over() -> None:
    answer = "say(id=number, result={'content': [{'type': 'text', 'text': 'ok'}]})"
    act = f"print('debug'); print('{{}}'); print('[1]'); {answer}"

    async def talk(tools: dict[str, Tool]) -> ToolResult:
        return await tools["s.t"].call({}, NOWHERE)

    assert with_tools(by_hand(act), talk).content == "ok"


def test_what_it_says_about_its_tools_is_cleaned_and_bounded() -> None:
    declared: list[tuple[str, str, dict[str, Any]]] = [
        ("good", "x\x1b[31m" + "y" * 5000, {"type": "object", "properties": {"a": {"description": "z\u202e\x07"}}}),
        ("bad name!", "", {"type": "object"}),
        ("large", "", {"type": "object", "description": "w" * 20_000}),
        *((f"t{number}", "", {"type": "object"}) for number in range(200)),
    ]

    async def talk(tools: dict[str, Tool]) -> dict[str, dict[str, Any]]:
        return {name: tool.definition for name, tool in tools.items()}

    found = with_tools(by_hand("pass", declared), talk)
    assert found["s.good"]["description"].startswith("xyyy")
    assert len(found["s.good"]["description"]) <= 1000
    assert found["s.good"]["parameters"]["properties"] == {"a": {"description": "z"}}
    assert found["s.large"]["parameters"] == {"type": "object"}
    assert "s.bad name!" not in found
    assert len(found) < 65


@pytest.mark.parametrize(
    "code", ["raise SystemExit('no luck')", "print('hello')", "import time; time.sleep(60)", "not python"]
)
def test_a_server_that_does_not_come_up_is_said_to(code: str) -> None:
    async def talk(tools: dict[str, Tool]) -> None:
        raise AssertionError("it cannot come up")

    with pytest.raises(SandboxError, match="the MCP server s did not come up") as caught:
        with_tools(code, talk, start_seconds=2.0 if "sleep" in code else HANG)
    assert ("no luck" in str(caught.value)) == ("no luck" in code)


def test_a_server_has_a_name_and_a_command() -> None:
    for name, command in (("a.b", ("x",)), ("", ("x",)), ("a", ())):
        with pytest.raises(BadInput):
            McpServer(name, command)
