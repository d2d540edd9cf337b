"""The tools `remember` and `recall`, over any `NoteStore`."""

import difflib
import re
from typing import Any

from gametape.agent.tools.argument_schema import parameters_schema
from gametape.agent.tools.tool import ValidatedTool
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import NoteStore, Workspace

_NAME = {"type": "string", "minLength": 1, "maxLength": 100, "description": "Short name of the note."}
_MOST_FOUND = 10
_MOST_LISTED = 100
_PREVIEW = 100


class RememberTool(ValidatedTool):
    name = "remember"
    description = "Keep a note for later, such as a finding or a decision. A note of the same name is replaced."
    parameters = parameters_schema(
        ("name", "text"), name=_NAME, text={"type": "string", "minLength": 1, "maxLength": 20_000}
    )

    def __init__(self, notes: NoteStore) -> None:
        self._notes = notes

    async def act(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:  # noqa: ARG002
        await self._notes.write(arguments["name"], arguments["text"])
        return ToolResult(content=f"kept as {arguments['name']}")


class RecallTool(ValidatedTool):
    name = "recall"
    description = "Read a note by its name, find lines of notes by words, or, without arguments, list all notes."
    parameters = parameters_schema(name=_NAME, query={"type": "string", "minLength": 1, "maxLength": 500})

    def __init__(self, notes: NoteStore) -> None:
        self._notes = notes

    async def act(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:  # noqa: ARG002
        if "name" in arguments:
            return ToolResult(content=await self._read(arguments["name"]))
        if "query" in arguments:
            return ToolResult(content=await self._search(arguments["query"]))
        return ToolResult(content=await self._list())

    async def _read(self, name: str) -> str:
        text = await self._notes.read(name)
        if text is None:
            names = await self._notes.names()
            close = difflib.get_close_matches(name, names, n=3) or names[-5:]
            raise BadInput(f"there is no note {name!r}" + (f"; there is {', '.join(close)}" if close else ""))
        return text

    async def _search(self, query: str) -> str:
        """The lines with the most of the words, best first."""
        words = set(re.findall(r"\w+", query.lower()))
        scored = []
        for name in await self._notes.names():
            for number, line in enumerate((await self._notes.read(name) or "").splitlines(), 1):
                score = len(words & set(re.findall(r"\w+", f"{name} {line}".lower())))
                if score and line.strip():
                    scored.append((-score, name, number, line.strip()))
        best = sorted(scored)[:_MOST_FOUND]
        return (
            "\n".join(f"{name}:{number}: {line[:300]}" for _, name, number, line in best) or "no note has these words"
        )

    async def _list(self) -> str:
        names = await self._notes.names()
        lines = []
        for name in names[:_MOST_LISTED]:
            first = next(iter((await self._notes.read(name) or "").strip().splitlines()), "")
            lines.append(f"{name}: {first[:_PREVIEW]}")
        more = [f"... and {len(names) - _MOST_LISTED} more"] if len(names) > _MOST_LISTED else []
        return "\n".join([*lines, *more]) or "there are no notes"
