"""The tool `write`: write a whole file."""

import contextlib
import difflib
from typing import Any

from gametape.agent import text_file
from gametape.agent.agent_state import AgentState
from gametape.agent.tools import paths
from gametape.agent.tools.argument_schema import parameters_schema
from gametape.agent.tools.tool import ValidatedTool
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import Workspace

_MOST_COMPARED = 20_000
"""Lines up to which two versions are compared; beyond that, every line counts as changed."""


class WriteTool(ValidatedTool):
    name = "write"
    description = "Write a whole text file, making its directories. For a change to an existing file use edit."
    parameters = parameters_schema(
        ("path", "content"),
        path={"type": "string", "minLength": 1, "description": "Relative to the workspace."},
        content={"type": "string", "description": "All of the file."},
    )

    def __init__(self, state: AgentState) -> None:
        self._state = state

    async def act(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        path, body = paths.normalize_path(arguments["path"]), arguments["content"]
        before = None
        with contextlib.suppress(BadInput):
            before = text_file.decode_text(await workspace.get(path))
        after = text_file.TextFile(body)
        await write_file(workspace, path, after.encode())
        added, removed = count_changed_lines(before.lines if before else [], after.lines)
        self._state.record_edit(path, added, removed)
        self._state.open_file(path, 1)
        action = "replaced" if before is not None else "written"
        return ToolResult(content=f"{path} {action}: {len(after.lines):,} lines (+{added:,} -{removed:,})")


async def write_file(workspace: Workspace, path: str, content: bytes) -> None:
    """Write a file of the workspace. Raises `BadInput` that says what to do."""
    try:
        await workspace.put(path, content)
    except BadInput as error:
        if paths.is_directory(error):
            raise BadInput(f"{path} is a directory") from error
        raise paths.explain_error(error, path) from error
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from error


def count_changed_lines(before: list[str], after: list[str]) -> tuple[int, int]:
    """The numbers of lines added and removed."""
    if before and len(before) + len(after) <= _MOST_COMPARED:
        blocks = difflib.SequenceMatcher(None, before, after, autojunk=True).get_matching_blocks()
        same = sum(block.size for block in blocks)
        return len(after) - same, len(before) - same
    return (0, 0) if before == after else (len(after), len(before))
