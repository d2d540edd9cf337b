"""The list of tools for a task, and what holds for every one of them."""

import json
import sys
from pathlib import Path

import pytest

from gametape.agent.agent_state import AgentState
from gametape.agent.notes import DirectoryNoteStore
from gametape.agent.tools import EmbeddingCache, standard_tools
from gametape.core.protocols import Tool
from gametape.sandbox.scheduler import RewindableWorkspace
from gametape.verify.static_analysis.analyzer import StaticAnalyzer
from tests.agent.tools.workspace import within


def every(tmp_path: Path) -> list[Tool]:
    return standard_tools(
        AgentState(),
        notes=DirectoryNoteStore(tmp_path / "notes"),
        analyzer=StaticAnalyzer(tmp_path),
        python=sys.executable,
        history=True,
        embeddings=EmbeddingCache(),
    )


def test_the_list_follows_what_there_is(tmp_path: Path) -> None:
    assert [tool.name for tool in standard_tools(AgentState())] == [
        *("shell", "read", "write", "edit", "search", "jump", "finish"),
    ]
    assert [tool.name for tool in every(tmp_path)] == [
        *("shell", "read", "write", "edit", "search", "jump", "check", "history", "semantic_search"),
        *("remember", "recall", "finish"),
    ]


def test_definitions_are_json_and_short(tmp_path: Path) -> None:
    for tool in every(tmp_path):
        definition = json.loads(json.dumps(tool.definition))
        assert definition["name"] == tool.name
        assert 20 < len(definition["description"]) < 300
        assert definition["parameters"]["type"] == "object"
        assert set(definition["parameters"]["required"]) <= set(definition["parameters"]["properties"])


@pytest.mark.parametrize(
    "hostile", ["", "\0", "\ud800", "../../etc/passwd", "$(id)", "a" * 10_000, None, [], {}, -1, 10**30]
)
def test_no_argument_makes_a_tool_raise(tmp_path: Path, hostile: object) -> None:
    async def talk(workspace: RewindableWorkspace) -> None:
        for tool in every(tmp_path):
            names = tool.definition["parameters"]["properties"]
            result = await tool.call(dict.fromkeys(names, hostile), workspace)
            assert isinstance(result.content, str)
            assert not result.finished
            result.content.encode()
        assert (await workspace.shell("echo alive")).stdout == "alive\n"

    within({"a.py": "x = 1\n"}, talk)


def test_a_fork_has_its_own_cursor() -> None:
    state = AgentState()
    read = standard_tools(state)[1]
    copy = state.model_copy()
    other = standard_tools(copy)[1]

    async def talk(workspace: RewindableWorkspace) -> None:
        await read.call({"path": "a.py", "line": 2}, workspace)
        await other.call({"path": "a.py", "line": 1}, workspace)

    within({"a.py": "x\ny\n"}, talk)
    assert (state.cursor("a.py"), copy.cursor("a.py")) == (2, 1)
