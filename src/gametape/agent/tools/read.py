"""The tool `read`: show a window of a file, or list a directory."""

from typing import Any

from gametape.agent import text_file
from gametape.agent.agent_state import AgentState
from gametape.agent.tools import paths
from gametape.agent.tools.argument_schema import parameters_schema
from gametape.agent.tools.tool import ValidatedTool
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import Workspace

_MOST_LINES = 2000
_FRAME = 400
"""Room for the line before and the line after the file's own."""


class ReadTool(ValidatedTool):
    """Opens the file in the agent's state, with the cursor on the line that was asked for."""

    name = "read"
    description = (
        "Show numbered lines of a text file, or the entries of a directory. Without a line the whole file is shown if "
        "it is not too long; else around the cursor if it is open, and from its beginning if not."
    )
    parameters = parameters_schema(
        ("path",),
        path={"type": "string", "minLength": 1, "description": "Relative to the workspace."},
        line={"type": "integer", "minimum": 1, "description": "Line to start at."},
        count={"type": "integer", "minimum": 1, "maximum": _MOST_LINES, "description": "How many lines."},
    )

    def __init__(self, state: AgentState) -> None:
        self._state = state

    async def act(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        path = paths.normalize_path(arguments["path"])
        if path == ".":
            return ToolResult(content=await paths.list_directory(workspace, path))
        try:
            content = await workspace.get(path)
        except BadInput as error:
            if paths.is_missing(error):
                raise BadInput(f"there is no {path}{await paths.similar_names(workspace, path)}") from error
            if paths.is_directory(error):
                return ToolResult(content=await paths.list_directory(workspace, path))
            raise paths.explain_error(error, path) from error
        text = text_file.decode_text(content)
        if text is None:
            return ToolResult(content=f"{path} is not text: {len(content):,} bytes, beginning {content[:16].hex(' ')}")
        return ToolResult(content=self._window(path, text.lines, arguments))

    def _window(self, path: str, lines: list[str], arguments: dict[str, Any]) -> str:
        cursor = arguments.get("line", self._state.cursor(path) or 1)
        if not lines:
            self._state.open_file(path, 1)
            return f"{path} is empty"
        if cursor > len(lines) and "line" in arguments:
            raise BadInput(f"{path} has {len(lines):,} lines; there is no line {cursor:,}")
        cursor = min(cursor, len(lines))
        self._state.open_file(path, cursor)
        first, shown = self._numbered(lines, cursor, arguments)
        last = first + len(shown) - 1
        more = f"\n[{len(lines) - last:,} more lines; go on with line={last + 1}]" if last < len(lines) else ""
        head = f"{path}, lines {first:,}-{last:,} of {len(lines):,}"
        return "\n".join([head, *shown]) + more

    def _numbered(self, lines: list[str], cursor: int, arguments: dict[str, Any]) -> tuple[int, list[str]]:
        """The number of the first line to show, and as many numbered lines from it as there is room for."""
        if "line" not in arguments and "count" not in arguments and len(lines) <= _MOST_LINES:
            whole = self._fitting(lines, 1, len(lines))
            if len(whole) == len(lines):
                return 1, whole
        count = arguments.get("count", _MOST_LINES if "line" in arguments or cursor == 1 else text_file.WINDOW_LINES)
        first = cursor if "line" in arguments else text_file.window_start(cursor, count, len(lines))
        return first, self._fitting(lines, first, count)

    def _fitting(self, lines: list[str], first: int, count: int) -> list[str]:
        numbered = text_file.number_lines(lines, first, count).split("\n")
        room = self._state.max_read_characters - _FRAME
        for number, line in enumerate(numbered):
            room -= len(line) + 1
            if room < 0:
                return numbered[: max(1, number)]
        return numbered
