"""`answer`: hand in the one file that was asked for, and be done."""

from typing import Any

from gametape.agent import textfile
from gametape.agent.tools.schema import parameters
from gametape.agent.tools.tool import CheckedTool
from gametape.agent.tools.write import put
from gametape.core.messages import ToolResult
from gametape.core.protocols import Environment


class Answer(CheckedTool):
    name = "answer"
    description = "Hand in the whole file. Nothing can be changed afterwards."
    parameters = parameters(("code",), code={"type": "string", "description": "All of the file, in Python."})

    def __init__(self, path: str) -> None:
        self._path = path

    async def act(self, arguments: dict[str, Any], environment: Environment) -> ToolResult:
        await put(environment, self._path, textfile.TextFile(arguments["code"]).content())
        return ToolResult(content=f"{self._path} was handed in", finished=True)
