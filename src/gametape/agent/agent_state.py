"""The agent's working state: its open files with a cursor in each, its edits, and its shell's directory.

The state is recorded with every turn and put into a fresh context after compaction, so it is small and bounded.
"""

from collections import Counter
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from gametape.agent import text_file
from gametape.core.base_model import Count, StrictModel
from gametape.core.errors import BadInput
from gametape.core.protocols import Workspace
from gametape.sandbox.policy import WORKSPACE

MAX_OPEN_FILES = 6
MAX_EDITS = 200
_NAMED = 5
"""The number of files that `describe` names."""


class OpenFile(StrictModel):
    path: str
    line: Annotated[int, Field(ge=1)]


class FileEdit(StrictModel):
    """One change of one file by a tool. Changes by shell commands are not listed."""

    turn: Count
    path: str
    added: Count
    removed: Count


class AgentState(BaseModel):
    """The state that the tools of a rollout share, as it is recorded under `extra.gametape.work`. The rollout sets
    `turn`; a fork has a copy."""

    model_config = ConfigDict(extra="forbid", strict=True)

    turn: Count = 0
    directory: str = WORKSPACE
    """The shell's directory after its last command."""
    open: list[OpenFile] = Field(default_factory=list)
    """In order of use: the last used comes last."""
    edits: list[FileEdit] = Field(default_factory=list)
    _max_read_characters: int = PrivateAttr(default=65_536)

    @property
    def max_read_characters(self) -> int:
        """What one call of `read` may show. The rollout sets it by the model's window; it is not recorded."""
        return self._max_read_characters

    @max_read_characters.setter
    def max_read_characters(self, value: int) -> None:
        self._max_read_characters = value

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """The inverse of `data`. Raises `BadInput` for anything else."""
        try:
            return cls.model_validate(data)
        except ValueError as error:
            raise BadInput(f"the saved state of the agent's work cannot be read: {error}") from error

    @property
    def data(self) -> dict[str, Any]:
        """The state as JSON."""
        return self.model_dump(mode="json")

    @property
    def edited_paths(self) -> list[str]:
        """In the order of their first edit."""
        return list(dict.fromkeys(edit.path for edit in self.edits))

    def cursor(self, path: str) -> int | None:
        return next((file.line for file in self.open if file.path == path), None)

    def open_file(self, path: str, line: int) -> None:
        """Open a file with the cursor at a line. Beyond the maximum, the least recently used file is closed."""
        others = [file for file in self.open if file.path != path]
        self.open = [*others, OpenFile(path=path, line=max(1, line))][-MAX_OPEN_FILES:]

    def record_edit(self, path: str, added: int, removed: int) -> None:
        edit = FileEdit(turn=self.turn, path=path, added=added, removed=removed)
        self.edits = [*self.edits, edit][-MAX_EDITS:]

    def describe(self) -> str:
        """Up to three lines: the open files, the edits, and the shell's directory."""
        lines = []
        if self.open:
            lines.append("open: " + ", ".join(f"{file.path}:{file.line}" for file in reversed(self.open)))
        if edits := self.edits:
            added: Counter[str] = Counter()
            removed: Counter[str] = Counter()
            for edit in edits:
                added[edit.path] += edit.added
                removed[edit.path] += edit.removed
            paths = list(dict.fromkeys(edit.path for edit in reversed(edits)))
            named = ", ".join(f"{path} +{added[path]} -{removed[path]}" for path in paths[:_NAMED])
            more = f", and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
            lines.append(f"edited: {named}{more}")
        if self.directory != WORKSPACE:
            lines.append(f"shell in: {self.directory}")
        return "\n".join(text_file.sanitize_text(line) for line in lines)

    async def render(self, workspace: Workspace, max_characters: int = 8_000, count: int = 40) -> str:
        """Windows of the open files as they are now, the last used first, in at most `max_characters`."""
        parts: list[str] = []
        for file in reversed(self.open):
            part = await _window(workspace, file, count)
            if sum(map(len, parts)) + 2 * len(parts) + len(part) > max_characters:
                break
            parts.append(part)
        return "\n\n".join(parts)


async def _window(workspace: Workspace, open_file: OpenFile, count: int) -> str:
    try:
        text = text_file.decode_text(await workspace.get(open_file.path))
    except BadInput as error:
        return f"{open_file.path}: {error}"
    if text is None:
        return f"{open_file.path}: not text any more"
    lines = text.lines
    first = text_file.window_start(open_file.line, count, len(lines))
    last = min(len(lines), first + count - 1)
    return f"{open_file.path}, lines {first}-{last} of {len(lines)}\n{text_file.number_lines(lines, first, count)}"
