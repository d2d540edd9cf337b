"""What a model said is kept before anything is done about it: a turn that a kill cut off is run again, not asked again.

So it is paid for once, its calls are the same, and what they do outside the workspace has the same keys.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from gametape.engines.conversation import Conversation, Reply
from gametape.engines.wrapping import WrappedConversation
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


class KeptConversation(WrappedConversation):
    """A conversation whose replies go through a slot."""

    def __init__(self, inner: Conversation, slot: ReplySlot) -> None:
        super().__init__(inner)
        self._slot = slot

    @property
    def failures(self) -> Sequence[object]:
        """Questions that had to be asked again, where the conversation says so."""
        return getattr(self._inner, "failures", ())

    async def ask(self, max_tokens: int) -> Reply:
        kept = self._slot.read()
        if kept is not None:
            self._inner.recall(kept)
            return kept
        reply = await self._inner.ask(max_tokens)
        self._slot.write(reply)
        return reply
