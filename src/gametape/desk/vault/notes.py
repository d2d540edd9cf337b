"""The vault as an agent's notes: each read is logged, each write is a commit that names the turn."""

import asyncio
from collections.abc import Callable

from gametape.agent.tools.memory import RecallTool, RememberTool
from gametape.core.messages import ToolResult
from gametape.core.protocols import Tool, Workspace
from gametape.desk.agent_turns import TurnKeys
from gametape.desk.vault.note_queries import search_notes
from gametape.desk.vault.vault import NoteWriter, NoteWriteResult, Vault

_MAX_HITS = 10
_MAX_LISTED = 100
_PREVIEW_LENGTH = 100


class VaultNotes:
    """A note store over a vault for one attempt, such as a thread. `turn` gives the number of the current turn.

    A turn that is run again after a kill writes nothing twice.
    """

    def __init__(self, vault: Vault, attempt: str, turn: Callable[[], int]) -> None:
        self.vault = vault
        self._keys = TurnKeys(attempt, turn, "note")

    async def names(self) -> list[str]:
        return await asyncio.to_thread(self.vault.names)

    async def read(self, name: str) -> str | None:
        return await asyncio.to_thread(self.vault.read_by, name, self._keys.attempt, self._keys.turn)

    async def write(self, name: str, text: str) -> None:
        await self.keep(name, text)

    async def keep(self, name: str, text: str) -> NoteWriteResult:
        """Write a note, and return what became of it."""
        writer = NoteWriter(self._keys.attempt, self._keys.turn, self._keys.next())
        return await asyncio.to_thread(self.vault.write, name, text, writer)


class RememberInVault(RememberTool):
    """Tells the agent whether its note was merged with another version or stored under another name."""

    description = (
        "Keep a note for later, such as a finding or a decision, as people/NAME, projects/NAME or agent/NAME. "
        "It takes the place of the note of that name, so recall that one first."
    )

    def __init__(self, notes: VaultNotes) -> None:
        super().__init__(notes)
        self._vault_notes = notes

    async def act(self, arguments: dict[str, str], workspace: Workspace) -> ToolResult:  # noqa: ARG002
        result = await self._vault_notes.keep(arguments["name"], arguments["text"])
        messages = {
            "kept": f"kept as {result.note}",
            "merged": f"kept as {result.note}, merged with what others wrote there meanwhile; recall it to see both",
            "aside": f"kept as {result.note}: the note {arguments['name']} says something else since you read it, and "
            "was not changed; recall it, and write one that holds for both",
        }
        return ToolResult(content=messages[result.how])


class RecallFromVault(RecallTool):
    """Searching and listing show single lines and do not count as reading a note."""

    def __init__(self, notes: VaultNotes) -> None:
        super().__init__(notes)
        self._vault = notes.vault

    async def _found(self, query: str) -> str:
        hits = await asyncio.to_thread(search_notes, self._vault, query)
        lines = [f"{hit.note}:{hit.line}: {hit.text[:300]}" for hit in hits[:_MAX_HITS]]
        return "\n".join(lines) or "no note has these words"

    async def _listed(self) -> str:
        names = await asyncio.to_thread(self._vault.names)
        lines = [f"{name}: {self._first_line(name)}" for name in names[:_MAX_LISTED]]
        more = [f"... and {len(names) - _MAX_LISTED} more"] if len(names) > _MAX_LISTED else []
        return "\n".join([*lines, *more]) or "there are no notes"

    def _first_line(self, name: str) -> str:
        return next(iter((self._vault.read(name) or "").strip().splitlines()), "")[:_PREVIEW_LENGTH]


def vault_tools(notes: VaultNotes) -> list[Tool]:
    return [RememberInVault(notes), RecallFromVault(notes)]
