from gametape.agent.agent_state import AgentState
from gametape.agent.tools.write import WriteTool
from gametape.sandbox.scheduler import RewindableWorkspace
from tests.agent.tools.workspace import calls, within


def test_files_are_written_with_their_directories_and_counted() -> None:
    state = AgentState()
    state.turn = 7
    tool = WriteTool(state)

    async def talk(workspace: RewindableWorkspace) -> tuple[str, str, bytes, str]:
        first = await tool.call({"path": "new/deep/a.py", "content": "a\nb\nc\n"}, workspace)
        second = await tool.call({"path": "new/deep/a.py", "content": "a\nx\nc\nd\n"}, workspace)
        seen = await workspace.shell("cat new/deep/a.py")
        return first.content, second.content, await workspace.get("new/deep/a.py"), seen.stdout

    first, second, stored, seen = within({}, talk)
    assert first == "new/deep/a.py written: 3 lines (+3 -0)"
    assert second == "new/deep/a.py replaced: 4 lines (+2 -1)"
    assert stored.decode() == seen == "a\nx\nc\nd\n"
    assert [(edit.turn, edit.added, edit.removed) for edit in state.edits] == [(7, 3, 0), (7, 2, 1)]
    assert state.cursor("new/deep/a.py") == 1


def test_what_cannot_be_written_is_one_line() -> None:
    state = AgentState()
    results = calls(
        {"d/x": "1"},
        WriteTool(state),
        {"path": "d", "content": ""},
        {"path": "out/x", "content": ""},
        {"path": "d/x/y", "content": ""},
        {"path": "/etc/passwd", "content": ""},
        {"path": ".", "content": ""},
        {"path": "n" * 300, "content": ""},
        {"path": "x", "content": "\ud800"},
        {"path": "x"},
        before="ln -s /tmp out",
    )
    for result in results:
        assert result.failed
        assert "\n" not in result.content
    assert state.edits == []


def test_a_link_is_replaced_not_followed() -> None:
    async def talk(workspace: RewindableWorkspace) -> str:
        await workspace.shell("echo kept > target; ln -s target link")
        assert not (await WriteTool(AgentState()).call({"path": "link", "content": "mine\n"}, workspace)).failed
        return (await workspace.shell("cat target link; test -L link; echo $?")).stdout

    assert within({}, talk) == "kept\nmine\n1\n"
