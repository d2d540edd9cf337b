"""Words in notes, the best lines first."""

import re
from typing import NamedTuple

from gametape.desk.vault.names import notes_under
from gametape.desk.vault.vault import Vault

_WORD = re.compile(r"\w+")


class Hit(NamedTuple):
    note: str
    line: int
    text: str


def search(vault: Vault, query: str) -> list[Hit]:
    """Lines that hold words of the query: those with the whole of it first, then by how many of its words they or the
    name of their note hold."""
    whole, words = " ".join(query.lower().split()), set(_WORD.findall(query.lower()))
    scored = []
    for path, content in notes_under(vault.root).items():
        note = path.removesuffix(".md")
        named = words & set(_WORD.findall(note.lower()))
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), start=1):
            lower = line.lower()
            inside = words & set(_WORD.findall(lower))
            exact = bool(whole) and whole in " ".join(lower.split())
            if inside or exact or (named and number == 1):
                scored.append((not exact, -len(inside | named), Hit(note, number, line.strip())))
    return [hit for *_, hit in sorted(scored)]
