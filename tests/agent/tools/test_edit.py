import pytest

from gametape.agent.agent_state import AgentState
from gametape.agent.tools.edit import EditTool
from gametape.core.messages import ToolResult
from gametape.sandbox.scheduler import RewindableWorkspace
from tests.agent.tools.workspace import within

CODE = "def f(x):\n    return x + 1\n\n\ndef g(x):\n    y = x\n    return y\n"


def edit(
    content: str | bytes, old: str, new: str, state: AgentState | None = None, **more: bool
) -> tuple[ToolResult, bytes]:
    async def talk(workspace: RewindableWorkspace) -> tuple[ToolResult, bytes]:
        result = await EditTool(state or AgentState()).call({"path": "m.py", "old": old, "new": new, **more}, workspace)
        return result, await workspace.get("m.py")

    return within({"m.py": content}, talk)


def test_one_match_is_replaced_and_shown() -> None:
    state = AgentState()
    result, after = edit(CODE, "    y = x\n", "    y = 2 * x\n    y += 1\n", state)
    assert after.decode() == CODE.replace("    y = x\n", "    y = 2 * x\n    y += 1\n")
    assert result.content.startswith("m.py edited\n2      return x + 1\n")
    assert "6      y = 2 * x\n7      y += 1\n8      return y" in result.content
    assert [(one.added, one.removed) for one in state.edits] == [(2, 1)]
    assert state.cursor("m.py") == 6


def test_many_matches_say_where_or_are_all_replaced() -> None:
    result, after = edit(CODE, "return", "yield")
    assert result.content == "edit: old occurs 2 times in m.py, at lines 2, 7; take more lines around it, or all=true"
    assert after.decode() == CODE
    result, after = edit(CODE, "return", "yield", all=True)
    assert result.content.startswith("m.py edited in 2 places\n")
    assert after.decode() == CODE.replace("return", "yield")


def test_no_match_shows_the_nearest_region() -> None:
    result, _ = edit(CODE, "def g(x):\n    z = x\n    return z\n", "")
    assert result.failed
    assert (
        "old does not occur in m.py; most like it, from line 5:\ndef g(x):\n    y = x\n    return y" in result.content
    )
    result, _ = edit(CODE, "import collections.abc", "")
    assert result.content == "edit: old does not occur in m.py, nor anything like it; read the file first"


def test_white_space_that_differs_is_named_and_made_visible() -> None:
    result, _ = edit("def f():\n\treturn 1  \n", "def f():\n    return 1\n", "")
    assert "but it does with other white space; as it is, from line 1:\ndef f():\n→return 1··\n(here → is a tab" in (
        result.content
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nold\r\nb\r\n", b"a\r\nnew\r\nmore\r\nb\r\n"),
        (b"\xef\xbb\xbfa\nold\nb", b"\xef\xbb\xbfa\nnew\nmore\nb"),
        (b"caf\xe9\nold\nb\n", b"caf\xe9\nnew\nmore\nb\n"),
        (b"a\r\nb\nold\nb\n", b"a\r\nb\nnew\nmore\nb\n"),
    ],
)
def test_line_ends_and_encoding_stay(before: bytes, after: bytes) -> None:
    result, found = edit(before, "old\nb", "new\nmore\nb")
    assert not result.failed
    assert found == after


def test_refusals() -> None:
    for content, old, new, words in (
        (CODE, "x", "x", "nothing would change"),
        (b"\0\1", "x", "y", "not text"),
        (b"caf\xe9 old\n", "old", "€", "which has no '€'"),
        (CODE, "", "y", "must not be empty"),
    ):
        result, after = edit(content, old, new)
        assert words in result.content
        assert result.failed
        assert after == (content.encode() if isinstance(content, str) else content)


def test_a_huge_file_without_a_match_is_answered_soon() -> None:
    result, _ = edit("some line of text that repeats\n" * 200_000, "some line of test that repeads\nnothing", "x")
    assert result.failed
    assert len(result.content) < 1000
