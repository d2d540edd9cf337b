"""`finish`: the agent says that it is done, and how sure it is."""

from typing import Any

from gametape.agent.tools.schema import parameters
from gametape.agent.tools.tool import CheckedTool
from gametape.core.messages import ToolResult
from gametape.core.protocols import Environment


class Finish(CheckedTool):
    name = "finish"
    description = "End the work, when it is done or cannot be done. Nothing can be changed afterwards."
    parameters = parameters(
        ("summary", "confidence"),
        summary={"type": "string", "maxLength": 8000, "description": "What was done and what was not, in short."},
        confidence={
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "The probability that the task is solved.",
        },
    )

    async def act(self, arguments: dict[str, Any], environment: Environment) -> ToolResult:  # noqa: ARG002
        return ToolResult(content=f"finished (confidence {float(arguments['confidence']):.2f})", finished=True)
