"""Queries over notes: search by words, and the list of open items."""

import re
from typing import NamedTuple

from gametape.desk.vault.note_files import note_name, read_notes
from gametape.desk.vault.repository import Commit, list_commits
from gametape.desk.vault.vault import Vault

_WORD = re.compile(r"\w+")


class NoteSearchHit(NamedTuple):
    note: str
    line: int
    text: str


def search_notes(vault: Vault, query: str) -> list[NoteSearchHit]:
    """Lines with words of the query: first those with the whole query, then by the number of its words in the line or
    in the name of the note."""
    whole, words = " ".join(query.lower().split()), set(_WORD.findall(query.lower()))
    scored = []
    for path, content in read_notes(vault.root).items():
        note = path.removesuffix(".md")
        named = words & set(_WORD.findall(note.lower()))
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), start=1):
            lower = line.lower()
            inside = words & set(_WORD.findall(lower))
            exact = bool(whole) and whole in " ".join(lower.split())
            if inside or exact or (named and number == 1):
                scored.append((not exact, -len(inside | named), NoteSearchHit(note, number, line.strip())))
    return [hit for *_, hit in sorted(scored)]


_OPEN = re.compile(r"^\s*(?:[-*+]\s+\[ \]\s+|(?:[-*+]\s+)?open:\s*)(?P<what>.*\S)", re.IGNORECASE)
_BLAMED = re.compile(r"([0-9a-f]{40}) \d+ (\d+)(?: \d+)?")


class OpenItem(NamedTuple):
    note: str
    line: int
    text: str
    commit: Commit
    """The commit that last changed the line."""


def list_open_items(vault: Vault) -> list[OpenItem]:
    """Unticked boxes and lines that begin with `open:`, the oldest first."""
    repository = vault.repository
    with repository.locked():
        files = repository.files(repository.head)
        items = []
        for path in sorted(files):
            note = note_name(path)
            if note is None:
                continue
            lines = repository.content(files[path]).decode("utf-8", "replace").splitlines()
            open_lines = {number: match["what"] for number, line in enumerate(lines, 1) if (match := _OPEN.match(line))}
            if open_lines:
                blamed = _blame(vault, path)
                items += [(note, number, text, blamed[number]) for number, text in open_lines.items()]
        known = {name: list_commits(repository, "-1", name)[0] for name in {name for *_, name in items}}
    open_items = [OpenItem(note, number, text, known[name]) for note, number, text, name in items]
    return sorted(open_items, key=lambda item: (item.commit.time, item.note, item.line))


def _blame(vault: Vault, path: str) -> dict[int, str]:
    """The commit of every line, by its number."""
    output = vault.repository.git("blame", "--porcelain", "--no-textconv", "HEAD", "--", path).decode(
        "utf-8", "replace"
    )
    matches = (_BLAMED.fullmatch(line) for line in output.split("\n"))
    return {int(match[2]): match[1] for match in matches if match}
