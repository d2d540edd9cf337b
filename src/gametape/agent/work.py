"""Where the agent stands: the files it has open, with a cursor in each, and what it has edited.

It is what a fresh context is given back after compaction, so it is small, bounded and plain data.
"""

from collections import Counter
from typing import Annotated, Any, Self

from pydantic import Field

from gametape.agent import textfile
from gametape.core.errors import BadInput
from gametape.core.model import Closed, Count
from gametape.core.protocols import Environment
from gametape.sandbox.policy import WORKSPACE

MOST_OPEN = 6
MOST_EDITS = 200
_NAMED = 5
"""Files that `describe` names."""


class Cursor(Closed):
    path: str
    line: Annotated[int, Field(ge=1)]


class Edit(Closed):
    """One change of one file by a tool. What a shell command changed is not here."""

    turn: Count
    path: str
    added: Count
    removed: Count


class Standing(Closed):
    """`Work` as data."""

    turn: Count = 0
    directory: str = WORKSPACE
    open: list[Cursor] = Field(default_factory=list)
    """The one used last comes last."""
    edits: list[Edit] = Field(default_factory=list)


class Work:
    """The state that tools share. Whoever runs the loop sets `turn`; a fork has a copy."""

    def __init__(self, standing: Standing | None = None) -> None:
        self._standing = standing or Standing()

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """Back from `data`. Raises `BadInput` for anything else."""
        try:
            return cls(Standing.model_validate(data))
        except ValueError as error:
            raise BadInput(f"the saved state of the agent's work cannot be read: {error}") from error

    @property
    def data(self) -> dict[str, Any]:
        """Plain JSON."""
        return self._standing.model_dump(mode="json")

    def copy(self) -> "Work":
        return Work(self._standing)

    @property
    def turn(self) -> int:
        return self._standing.turn

    @turn.setter
    def turn(self, turn: int) -> None:
        self._change(turn=turn)

    @property
    def directory(self) -> str:
        """Where the shell was after its last command."""
        return self._standing.directory

    @directory.setter
    def directory(self, directory: str) -> None:
        self._change(directory=directory)

    @property
    def open_files(self) -> list[Cursor]:
        return list(self._standing.open)

    @property
    def edits(self) -> list[Edit]:
        return list(self._standing.edits)

    @property
    def edited_paths(self) -> list[str]:
        """In the order of their first edit."""
        return list(dict.fromkeys(edit.path for edit in self._standing.edits))

    def cursor(self, path: str) -> int | None:
        return next((place.line for place in self._standing.open if place.path == path), None)

    def open(self, path: str, line: int) -> None:
        """Put the cursor there. The file that was not used for longest is closed when there are too many."""
        others = [place for place in self._standing.open if place.path != path]
        self._change(open=[*others, Cursor(path=path, line=max(1, line))][-MOST_OPEN:])

    def edited(self, path: str, added: int, removed: int) -> None:
        edit = Edit(turn=self.turn, path=path, added=added, removed=removed)
        self._change(edits=[*self._standing.edits, edit][-MOST_EDITS:])

    def describe(self) -> str:
        """A line each on the files in hand, on what was edited, and on where the shell is."""
        told = []
        if self._standing.open:
            told.append("open: " + ", ".join(f"{place.path}:{place.line}" for place in reversed(self._standing.open)))
        if edits := self._standing.edits:
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
        return "\n".join(textfile.shown(line) for line in told)

    async def render(self, environment: Environment, most: int = 8_000, count: int = 40) -> str:
        """Windows of the open files as they are now, the one used last first, in at most `most` characters."""
        parts: list[str] = []
        for place in reversed(self._standing.open):
            part = await _window(environment, place, count)
            if sum(map(len, parts)) + 2 * len(parts) + len(part) > most:
                break
            parts.append(part)
        return "\n\n".join(parts)

    def _change(self, **changes: Any) -> None:
        self._standing = self._standing.model_copy(update=changes)


async def _window(environment: Environment, place: Cursor, count: int) -> str:
    try:
        found = textfile.parse(await environment.get(place.path))
    except BadInput as error:
        return f"{place.path}: {error}"
    if found is None:
        return f"{place.path}: not text any more"
    lines = found.lines
    first = textfile.around(place.line, count, len(lines))
    last = min(len(lines), first + count - 1)
    return f"{place.path}, lines {first}-{last} of {len(lines)}\n{textfile.numbered(lines, first, count)}"
