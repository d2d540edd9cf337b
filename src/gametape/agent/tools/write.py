"""`write`: a whole file."""

import contextlib
import difflib
from typing import Any

from gametape.agent import textfile
from gametape.agent.tools import paths
from gametape.agent.tools.schema import parameters
from gametape.agent.tools.tool import CheckedTool
from gametape.agent.work import Work
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import Environment

_MOST_COMPARED = 20_000
"""Lines up to which two versions are compared; beyond, every line counts as changed."""


class Write(CheckedTool):
    name = "write"
    description = "Write a whole text file, making its directories. For a change to an existing file use edit."
    parameters = parameters(
        ("path", "content"),
        path={"type": "string", "minLength": 1, "description": "Relative to the workspace."},
        content={"type": "string", "description": "All of the file."},
    )

    def __init__(self, work: Work) -> None:
        self._work = work

    async def act(self, arguments: dict[str, Any], environment: Environment) -> ToolResult:
        path, body = paths.relative(arguments["path"]), arguments["content"]
        before = None
        with contextlib.suppress(BadInput):
            before = textfile.parse(await environment.get(path))
        after = textfile.TextFile(body)
        await put(environment, path, after.content())
        added, removed = changed(before.lines if before else [], after.lines)
        self._work.edited(path, added, removed)
        self._work.open(path, 1)
        did = "replaced" if before is not None else "written"
        return ToolResult(content=f"{path} {did}: {len(after.lines):,} lines (+{added:,} -{removed:,})")


async def put(environment: Environment, path: str, content: bytes) -> None:
    """Write a file of the workspace, or `BadInput` with words that help."""
    try:
        await environment.put(path, content)
    except BadInput as error:
        if paths.is_directory(error):
            raise BadInput(f"{path} is a directory") from error
        raise paths.explained(error, path) from error
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from error


def changed(before: list[str], after: list[str]) -> tuple[int, int]:
    """How many lines were added and removed."""
    if before and len(before) + len(after) <= _MOST_COMPARED:
        blocks = difflib.SequenceMatcher(None, before, after, autojunk=True).get_matching_blocks()
        same = sum(block.size for block in blocks)
        return len(after) - same, len(before) - same
    return (0, 0) if before == after else (len(after), len(before))
