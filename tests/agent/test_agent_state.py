import json

import pytest

from gametape.agent.agent_state import MAX_EDITS, MAX_OPEN_FILES, AgentState
from gametape.core.errors import BadInput
from gametape.sandbox.scheduler import RewindableWorkspace
from tests.agent.tools.workspace import within


def test_the_file_not_used_for_longest_is_closed() -> None:
    state = AgentState()
    for number in range(MAX_OPEN_FILES):
        state.open_file(f"f{number}", number + 1)
    state.open_file("f0", 9)
    state.open_file("new", 1)
    assert state.cursor("f1") is None
    assert state.cursor("f0") == 9
    assert len(state.open) == MAX_OPEN_FILES


def test_it_survives_json_and_a_copy_goes_its_own_way() -> None:
    state = AgentState()
    state.turn = 3
    state.directory = "/workspace/src"
    state.open_file("a.py", 12)
    state.record_edit("a.py", 4, 1)
    again = AgentState.from_data(json.loads(json.dumps(state.data)))
    assert again.data == state.data
    assert (again.edits[0].turn, again.edits[0].added) == (3, 4)
    copy = state.model_copy()
    copy.open_file("b.py", 1)
    copy.record_edit("b.py", 1, 0)
    assert state.cursor("b.py") is None
    assert state.edited_paths == ["a.py"]


@pytest.mark.parametrize("data", [None, {"turn": -1}, {"open": [{"path": "a"}]}, {"x": 1}, [], {"turn": "1"}])
def test_strange_data_is_refused(data: object) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        AgentState.from_data(data)


def test_it_is_described_in_a_few_lines() -> None:
    state = AgentState()
    assert state.describe() == ""
    state.open_file("a.py", 12)
    state.record_edit("a.py", 4, 1)
    state.record_edit("a.py", 1, 0)
    for number in range(9):
        state.record_edit(f"n{number}.py", 1, 0)
    state.directory = "/tmp"
    opened, edited, shell = state.describe().split("\n")
    assert opened == "open: a.py:12"
    assert edited == "edited: n8.py +1 -0, n7.py +1 -0, n6.py +1 -0, n5.py +1 -0, n4.py +1 -0, and 5 more"
    assert shell == "shell in: /tmp"


def test_the_history_is_bounded() -> None:
    state = AgentState()
    for _ in range(MAX_EDITS + 10):
        state.record_edit("a", 1, 1)
    assert len(state.edits) == MAX_EDITS


def test_windows_show_files_as_they_are_now() -> None:
    state = AgentState()
    for path, line in (("gone.py", 1), ("binary", 1), ("long.py", 500)):
        state.open_file(path, line)

    async def talk(workspace: RewindableWorkspace) -> tuple[str, str]:
        await workspace.shell("sed -i '500s/.*/changed by the shell/' long.py")
        return await state.render(workspace), await state.render(workspace, max_characters=60)

    long = "".join(f"x{number} = {number}\n" for number in range(1, 1001))
    whole, short = within({"long.py": long, "binary": b"\0\1"}, talk)
    assert whole.startswith("long.py, lines 487-526 of 1000\n487  x487 = 487\n")
    assert "500  changed by the shell" in whole
    assert "binary: not text any more" in whole
    assert "gone.py: " in whole
    assert len(short) <= 60
