"""What a model said is kept before anything is done about it: a turn that a kill cut off is run again, not asked again.

So it is paid for once, its calls are the same, and what they do outside the workspace has the same keys.
"""

import json
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter

from gametape.engines.conversation import Answer, Conversation, Reply, ToolDefinition
from gametape.record.atomic import write_atomically

_REPLY: TypeAdapter[Reply] = TypeAdapter(Reply)


@dataclass(frozen=True)
class ReplySlot:
    """Room for one reply: the one after so many recorded steps. The next takes its place."""

    file: Path
    position: Callable[[], int]

    def read(self) -> Reply | None:
        try:
            kept = json.loads(self.file.read_bytes())
        except FileNotFoundError:
            return None
        return _REPLY.validate_python(kept["reply"]) if kept["position"] == self.position() else None

    def write(self, reply: Reply) -> None:
        kept: dict[str, Any] = {"position": self.position(), "reply": _REPLY.dump_python(reply, mode="json")}
        write_atomically(self.file, json.dumps(kept).encode())


class KeptConversation:
    """A conversation whose replies go through a slot."""

    def __init__(self, inner: Conversation, slot: ReplySlot) -> None:
        self._inner, self._slot = inner, slot

    @property
    def length(self) -> int:
        return self._inner.length

    @property
    def failures(self) -> Sequence[object]:
        """Questions that had to be asked again, where the conversation says so."""
        return getattr(self._inner, "failures", ())

    def begin(self, system: str, tools: Sequence[ToolDefinition], user: str) -> None:
        self._inner.begin(system, tools, user)

    def tell(self, text: str) -> None:
        self._inner.tell(text)

    def answer(self, answers: Sequence[Answer]) -> None:
        self._inner.answer(answers)

    def recall(self, reply: Reply) -> None:
        self._inner.recall(reply)

    async def ask(self, max_tokens: int) -> Reply:
        kept = self._slot.read()
        if kept is not None:
            self._inner.recall(kept)
            return kept
        reply = await self._inner.ask(max_tokens)
        self._slot.write(reply)
        return reply

    def fork(self) -> Self:
        other = copy(self)
        other._inner = self._inner.fork()
        return other
