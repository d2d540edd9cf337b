"""The files of notes: which names are allowed, and reading them. Names come from agents: none can leave the vault.

A note is a markdown file in one of three folders, named without its ending: `people/ada`, `projects/desk`, `agent/ci`.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.record.directory_walk import walk

FOLDERS = ("people", "projects", "agent")
"""The people one works with, the projects, and what the agent keeps for itself."""
ENDING = ".md"
MAX_NOTES = 4096
MAX_CHARACTERS = 20_000
_MAX_FILE_BYTES = 1 << 20
_MAX_PARTS = 4
_MAX_PART_LENGTH = 64
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")
_NOT_ALLOWED = re.compile(r"[^a-z0-9]+")


def clean_name(name: str) -> str:
    """An agent's name for a note in its stored form: lower-case letters, digits and dashes, in one of the folders.
    Names that are equal after this are the same note. Raises `BadInput` if nothing is left."""
    parts = [part for raw in name.lower().removesuffix(ENDING).split("/") if (part := _clean_part(raw))]
    if parts and parts[0] not in FOLDERS:
        parts.insert(0, FOLDERS[-1])
    if not 2 <= len(parts) <= _MAX_PARTS:
        raise BadInput(f"{name[:80]!r} is not a name for a note; use people/NAME, projects/NAME or agent/NAME")
    return "/".join(parts)


def note_path(note: str) -> str:
    return note + ENDING


def note_name(path: str) -> str | None:
    """The name of the note at a path, or None if it is not a note. A person may use any file name except one with
    control characters or with bytes that are no text, which would break a commit's message."""
    parts = path.split("/")
    hidden = any(part.startswith(".") or not part for part in parts)
    if hidden or _CONTROL.search(path) or not path.endswith(ENDING) or parts[0] not in FOLDERS or len(parts) < 2:
        return None
    return path.removesuffix(ENDING)


def read_notes(root: Path) -> dict[str, bytes]:
    """Every note on disk, by its path. Links and huge files are left out."""
    return dict(_walk(root))


def read_note(root: Path, note: str) -> bytes | None:
    """The content of one note on disk, or None if there is none. No part of its path may be a link."""
    if note_name(note_path(note)) is None:
        return None
    path = root
    for part in note_path(note).split("/"):
        path = path / part
        if path.is_symlink():
            return None
    return read_regular_file(path)


def _walk(root: Path) -> Iterator[tuple[str, bytes]]:
    for folder in FOLDERS:
        if (root / folder).is_symlink():
            continue
        for directory, directories, files in walk(root / folder):
            directories[:] = sorted(name for name in directories if not name.startswith("."))
            for name in sorted(files):
                file = Path(directory) / name
                path = file.relative_to(root).as_posix()
                if note_name(path) is not None and (content := read_regular_file(file)) is not None:
                    yield path, content


def read_regular_file(path: Path) -> bytes | None:
    """The content of a regular file that is not huge; None for anything else."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
            return None
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(fd)


def _clean_part(part: str) -> str:
    return _NOT_ALLOWED.sub("-", part).strip("-")[:_MAX_PART_LENGTH].rstrip("-")
