"""Where the agent stands: the files it has open, with a cursor in each, and what it has edited.

It is what a fresh context is given back after compaction, so it is small, bounded and plain data.
"""

from collections import Counter
from typing import Annotated, Any, Self

from pydantic import Field

from gametape.agent import text_file
from gametape.core.base_model import Count, StrictModel
from gametape.core.errors import BadInput
from gametape.core.protocols import Workspace
from gametape.sandbox.policy import WORKSPACE

MAX_OPEN_FILES = 6
MAX_EDITS = 200
_NAMED = 5
"""Files that `describe` names."""


class OpenFile(StrictModel):
    path: str
    line: Annotated[int, Field(ge=1)]


class FileEdit(StrictModel):
    """One change of one file by a tool. What a shell command changed is not here."""

    turn: Count
    path: str
    added: Count
    removed: Count


class AgentStateData(StrictModel):
    """`Work` as data."""

    turn: Count = 0
    directory: str = WORKSPACE
    open: list[OpenFile] = Field(default_factory=list)
    """The one used last comes last."""
    edits: list[FileEdit] = Field(default_factory=list)


class AgentState:
    """The state that tools share. Whoever runs the loop sets `turn`; a fork has a copy."""

    def __init__(self, data: AgentStateData | None = None) -> None:
        self._data = data or AgentStateData()

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """Back from `data`. Raises `BadInput` for anything else."""
        try:
            return cls(AgentStateData.model_validate(data))
        except ValueError as error:
            raise BadInput(f"the saved state of the agent's work cannot be read: {error}") from error

    @property
    def data(self) -> dict[str, Any]:
        """Plain JSON."""
        return self._data.model_dump(mode="json")

    def copy(self) -> "AgentState":
        return AgentState(self._data)

    @property
    def turn(self) -> int:
        return self._data.turn

    @turn.setter
    def turn(self, turn: int) -> None:
        self._change(turn=turn)

    @property
    def directory(self) -> str:
        """Where the shell was after its last command."""
        return self._data.directory

    @directory.setter
    def directory(self, directory: str) -> None:
        self._change(directory=directory)

    @property
    def open_files(self) -> list[OpenFile]:
        return list(self._data.open)

    @property
    def edits(self) -> list[FileEdit]:
        return list(self._data.edits)

    @property
    def edited_paths(self) -> list[str]:
        """In the order of their first edit."""
        return list(dict.fromkeys(edit.path for edit in self._data.edits))

    def cursor(self, path: str) -> int | None:
        return next((place.line for place in self._data.open if place.path == path), None)

    def open_file(self, path: str, line: int) -> None:
        """Put the cursor there. The file that was not used for longest is closed when there are too many."""
        others = [place for place in self._data.open if place.path != path]
        self._change(open=[*others, OpenFile(path=path, line=max(1, line))][-MAX_OPEN_FILES:])

    def record_edit(self, path: str, added: int, removed: int) -> None:
        edit = FileEdit(turn=self.turn, path=path, added=added, removed=removed)
        self._change(edits=[*self._data.edits, edit][-MAX_EDITS:])

    def describe(self) -> str:
        """A line each on the files in hand, on what was edited, and on where the shell is."""
        told = []
        if self._data.open:
            told.append("open: " + ", ".join(f"{place.path}:{place.line}" for place in reversed(self._data.open)))
        if edits := self._data.edits:
            added: Counter[str] = Counter()
            removed: Counter[str] = Counter()
            for edit in edits:
                added[edit.path] += edit.added
                removed[edit.path] += edit.removed
            paths = list(dict.fromkeys(edit.path for edit in reversed(edits)))
            named = ", ".join(f"{path} +{added[path]} -{removed[path]}" for path in paths[:_NAMED])
            more = f", and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
            told.append(f"edited: {named}{more}")
        if self.directory != WORKSPACE:
            told.append(f"shell in: {self.directory}")
        return "\n".join(text_file.sanitize_text(line) for line in told)

    async def render(self, workspace: Workspace, max_characters: int = 8_000, count: int = 40) -> str:
        """Windows of the open files as they are now, the one used last first, in at most `most` characters."""
        parts: list[str] = []
        for place in reversed(self._data.open):
            part = await _window(workspace, place, count)
            if sum(map(len, parts)) + 2 * len(parts) + len(part) > max_characters:
                break
            parts.append(part)
        return "\n\n".join(parts)

    def _change(self, **changes: Any) -> None:
        self._data = self._data.model_copy(update=changes)


async def _window(workspace: Workspace, open_file: OpenFile, count: int) -> str:
    try:
        found = text_file.decode_text(await workspace.get(open_file.path))
    except BadInput as error:
        return f"{open_file.path}: {error}"
    if found is None:
        return f"{open_file.path}: not text any more"
    lines = found.lines
    first = text_file.window_start(open_file.line, count, len(lines))
    last = min(len(lines), first + count - 1)
    return f"{open_file.path}, lines {first}-{last} of {len(lines)}\n{text_file.number_lines(lines, first, count)}"
