"""What is still open: boxes that nobody has ticked and lines that begin with `open:`, the oldest first."""

import re
from typing import NamedTuple

from gametape.desk.vault.history import Commit, commits
from gametape.desk.vault.names import note_at
from gametape.desk.vault.vault import Vault

_OPEN = re.compile(r"^\s*(?:[-*+]\s+\[ \]\s+|(?:[-*+]\s+)?open:\s*)(?P<what>.*\S)", re.IGNORECASE)
_BLAMED = re.compile(r"([0-9a-f]{40}) \d+ (\d+)(?: \d+)?")


class Loop(NamedTuple):
    note: str
    line: int
    text: str
    commit: Commit
    """The one that wrote the line as it is."""


def loops(vault: Vault) -> list[Loop]:
    repository = vault.repository
    with repository.locked():
        files = repository.files(repository.head)
        found = []
        for path in sorted(files):
            note = note_at(path)
            if note is None:
                continue
            lines = repository.content(files[path]).decode("utf-8", "replace").splitlines()
            opened = {number: match["what"] for number, line in enumerate(lines, 1) if (match := _OPEN.match(line))}
            if opened:
                blamed = _blame(vault, path)
                found += [(note, number, text, blamed[number]) for number, text in opened.items()]
        known = {name: commits(repository, "-1", name)[0] for name in {name for *_, name in found}}
    every = [Loop(note, number, text, known[name]) for note, number, text, name in found]
    return sorted(every, key=lambda loop: (loop.commit.time, loop.note, loop.line))


def _blame(vault: Vault, path: str) -> dict[int, str]:
    """The commit of every line."""
    said = vault.repository.git("blame", "--porcelain", "--no-textconv", "HEAD", "--", path).decode("utf-8", "replace")
    matches = (_BLAMED.fullmatch(line) for line in said.split("\n"))
    return {int(match[2]): match[1] for match in matches if match}
