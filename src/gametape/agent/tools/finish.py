"""The tools that end a rollout: `finish`, with a confidence, and `answer`, which hands in one file."""

from typing import Any

from gametape.agent import text_file
from gametape.agent.tools.argument_schema import parameters_schema
from gametape.agent.tools.tool import ValidatedTool
from gametape.agent.tools.write import write_file
from gametape.core.messages import ToolResult
from gametape.core.protocols import Workspace


class FinishTool(ValidatedTool):
    name = "finish"
    description = "End the work, when it is done or cannot be done. Nothing can be changed afterwards."
    parameters = parameters_schema(
        ("summary", "confidence"),
        summary={"type": "string", "maxLength": 8000, "description": "What was done and what was not, in short."},
        confidence={
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "The probability that the task is solved.",
        },
    )

    async def act(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:  # noqa: ARG002
        return ToolResult(content=f"finished (confidence {float(arguments['confidence']):.2f})", finished=True)


class AnswerTool(ValidatedTool):
    name = "answer"
    description = "Hand in the whole file. Nothing can be changed afterwards."
    parameters = parameters_schema(("code",), code={"type": "string", "description": "All of the file, in Python."})

    def __init__(self, path: str) -> None:
        self._path = path

    async def act(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        await write_file(workspace, self._path, text_file.TextFile(arguments["code"]).encode())
        return ToolResult(content=f"{self._path} was handed in", finished=True)
