"""Files in pieces that mean something by themselves: functions and classes, or paragraphs."""

import re
from typing import NamedTuple

MOST_LINES = 60
_SHORTEST = 3
_HEADS = re.compile(
    r"^\s*(?:@|(?:async\s+def|def|class|func|fn|function|export|impl|struct|interface|public|static)\b)"
)


class Chunk(NamedTuple):
    first: int
    """The number of its first line."""
    text: str


def chunks(text: str) -> list[Chunk]:
    """Pieces in order, without the blank ones. Nothing is parsed: the text is hostile, and lines tell enough."""
    lines = text.split("\n")
    found: list[Chunk] = []
    start = 0
    for index in range(1, len(lines) + 1):
        if index == len(lines) or index - start >= MOST_LINES or _begins(lines, start, index):
            piece = "\n".join(lines[start:index])
            if piece.strip():
                found.append(Chunk(start + 1, piece.rstrip()))
            start = index
    return found


def _begins(lines: list[str], start: int, index: int) -> bool:
    """Whether a new piece begins here: a definition after a line that does not belong to it, or a new paragraph after
    enough lines at the left margin."""
    line, before = lines[index], lines[index - 1]
    if _HEADS.match(line):
        return not before.lstrip().startswith("@")
    new_paragraph = not before.strip() and line.strip() and not line[0].isspace()
    return bool(new_paragraph) and index - start >= _SHORTEST
