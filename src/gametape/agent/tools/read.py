"""`read`: a window of a file."""

from typing import Any

from gametape.agent import textfile
from gametape.agent.tools import paths
from gametape.agent.tools.schema import parameters
from gametape.agent.tools.tool import CheckedTool
from gametape.agent.work import Work
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import Environment

_MOST_LINES = 400


class Read(CheckedTool):
    """Opens the file in `work`, with the cursor on the line that was asked for."""

    name = "read"
    description = (
        "Show numbered lines of a text file, or the entries of a directory. Without a line a file that is open is "
        "shown around its cursor, any other from its beginning."
    )
    parameters = parameters(
        ("path",),
        path={"type": "string", "minLength": 1, "description": "Relative to the workspace."},
        line={"type": "integer", "minimum": 1, "description": "Line to start at."},
        count={"type": "integer", "minimum": 1, "maximum": _MOST_LINES, "description": "How many lines; usually 80."},
    )

    def __init__(self, work: Work) -> None:
        self._work = work

    async def act(self, arguments: dict[str, Any], environment: Environment) -> ToolResult:
        path = paths.relative(arguments["path"])
        if path == ".":
            return ToolResult(content=await paths.listing(environment, path))
        try:
            content = await environment.get(path)
        except BadInput as error:
            if paths.is_missing(error):
                raise BadInput(f"there is no {path}{await paths.near(environment, path)}") from error
            if paths.is_directory(error):
                return ToolResult(content=await paths.listing(environment, path))
            raise paths.explained(error, path) from error
        found = textfile.parse(content)
        if found is None:
            return ToolResult(content=f"{path} is not text: {len(content):,} bytes, beginning {content[:16].hex(' ')}")
        return ToolResult(content=self._shown(path, found.lines, arguments))

    def _shown(self, path: str, lines: list[str], arguments: dict[str, Any]) -> str:
        count = arguments.get("count", textfile.WINDOW)
        cursor = arguments.get("line", self._work.cursor(path) or 1)
        if not lines:
            self._work.open(path, 1)
            return f"{path} is empty"
        if cursor > len(lines) and "line" in arguments:
            raise BadInput(f"{path} has {len(lines):,} lines; there is no line {cursor:,}")
        cursor = min(cursor, len(lines))
        first = cursor if "line" in arguments else textfile.around(cursor, count, len(lines))
        last = min(len(lines), first + count - 1)
        self._work.open(path, cursor)
        more = f"\n[{len(lines) - last:,} more lines; go on with line={last + 1}]" if last < len(lines) else ""
        head = f"{path}, lines {first:,}-{last:,} of {len(lines):,}"
        return f"{head}\n{textfile.numbered(lines, first, count)}{more}"
