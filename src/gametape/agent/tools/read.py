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

_MOST_LINES = 400


class ReadTool(ValidatedTool):
    """Opens the file in the agent's state, with the cursor on the line that was asked for."""

    name = "read"
    description = (
        "Show numbered lines of a text file, or the entries of a directory. Without a line a file that is open is "
        "shown around its cursor, any other from its beginning."
    )
    parameters = parameters_schema(
        ("path",),
        path={"type": "string", "minLength": 1, "description": "Relative to the workspace."},
        line={"type": "integer", "minimum": 1, "description": "Line to start at."},
        count={"type": "integer", "minimum": 1, "maximum": _MOST_LINES, "description": "How many lines; usually 80."},
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
        count = arguments.get("count", text_file.WINDOW_LINES)
        cursor = arguments.get("line", self._state.cursor(path) or 1)
        if not lines:
            self._state.open_file(path, 1)
            return f"{path} is empty"
        if cursor > len(lines) and "line" in arguments:
            raise BadInput(f"{path} has {len(lines):,} lines; there is no line {cursor:,}")
        cursor = min(cursor, len(lines))
        first = cursor if "line" in arguments else text_file.window_start(cursor, count, len(lines))
        last = min(len(lines), first + count - 1)
        self._state.open_file(path, cursor)
        more = f"\n[{len(lines) - last:,} more lines; go on with line={last + 1}]" if last < len(lines) else ""
        head = f"{path}, lines {first:,}-{last:,} of {len(lines):,}"
        return f"{head}\n{text_file.number_lines(lines, first, count)}{more}"
