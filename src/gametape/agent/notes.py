"""`DirectoryNoteStore`: the agent's notes as a directory of small files, for single tasks and goals."""

import asyncio
import contextlib
import re
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.record.atomic import write_atomically

MAX_NOTES = 64
MAX_NOTE_CHARACTERS = 20_000
_LONGEST_NAME = 64
_ENDING = ".md"


def normalize_name(name: str) -> str:
    """The name of a note on disk: lower-case letters, digits and dashes. Names that are equal after cleaning are the
    same note. Raises `BadInput` if nothing is left."""
    cleaned = re.sub(r"[^a-z0-9]+", "-", name.lower().removesuffix(_ENDING)).strip("-")[:_LONGEST_NAME].rstrip("-")
    if not cleaned:
        raise BadInput(f"{name[:_LONGEST_NAME]!r} is no name for a note; use letters, digits and dashes")
    return cleaned


class DirectoryNoteStore:
    """A `NoteStore` in a directory of the host that nobody else writes to. A note appears whole or not at all."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._writing = asyncio.Lock()

    async def names(self) -> list[str]:
        return await asyncio.to_thread(self._names)

    async def read(self, name: str) -> str | None:
        return await asyncio.to_thread(self._read, normalize_name(name))

    async def write(self, name: str, text: str) -> None:
        """Replace the note; an empty text removes it. Raises `BadInput` where a bound is passed."""
        cleaned = normalize_name(name)
        if len(text) > MAX_NOTE_CHARACTERS:
            raise BadInput(
                f"a note holds {MAX_NOTE_CHARACTERS:,} characters at most, not {len(text):,}; keep what matters"
            )
        async with self._writing:
            await asyncio.to_thread(self._write, cleaned, text)

    def _names(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            return sorted(path.stem for path in self._directory.iterdir() if path.suffix == _ENDING)
        return []

    def _read(self, name: str) -> str | None:
        with contextlib.suppress(FileNotFoundError):
            return self._path(name).read_text(encoding="utf-8", errors="replace")
        return None

    def _write(self, name: str, text: str) -> None:
        if not text:
            self._path(name).unlink(missing_ok=True)
            return
        names = self._names()
        if name not in names and len(names) >= MAX_NOTES:
            raise BadInput(f"there are {MAX_NOTES} notes already, the most there can be; write over one of them")
        self._directory.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path(name), text.encode("utf-8", "replace"))

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}{_ENDING}"
