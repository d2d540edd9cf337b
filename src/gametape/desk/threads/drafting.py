"""`draft`: what an agent wants to send to somebody waits for a person to release it."""

import asyncio
from typing import Any

from gametape.agent.tools.schema import parameters
from gametape.agent.tools.tool import CheckedTool
from gametape.core.messages import ToolResult
from gametape.core.protocols import Environment
from gametape.desk.outbox import Outbox
from gametape.desk.turn_keys import TurnKeys


class Draft(CheckedTool):
    name = "draft"
    description = "Write a message to somebody. It is not sent: a person reads it first, and releases or rejects it."
    parameters = parameters(
        ("to", "subject", "text"),
        to={"type": "string", "minLength": 1, "maxLength": 300},
        subject={"type": "string", "minLength": 1, "maxLength": 300},
        text={"type": "string", "minLength": 1, "maxLength": 20_000},
    )

    def __init__(self, outbox: Outbox, keys: TurnKeys) -> None:
        self._outbox, self._keys = outbox, keys

    async def act(self, arguments: dict[str, Any], environment: Environment) -> ToolResult:  # noqa: ARG002
        to, subject, text = (arguments[name] for name in ("to", "subject", "text"))
        name = await asyncio.to_thread(self._outbox.draft, self._keys.next(), self._keys.attempt, to, subject, text)
        return ToolResult(content=f"drafted as {name}; it waits for a person")
