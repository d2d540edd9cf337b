"""Put the lines of test files into messages of pytest that was run without the files' text.

pytest shows `???` for a line that it cannot read, and names the file and the number of the line below.
"""

import re

from gametape.record.source_tree import SourceTree

_UNREAD = re.compile(r"^(?P<mark>[> ] +)\?\?\?$")
_PLACE = re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>[1-9]\d{0,6}): ")


def with_source_lines(message: str, suite: SourceTree) -> str:
    """The message with the lines of these files where pytest could not show them; other lines stay as they are."""
    lines = message.split("\n")
    unread: int | None = None
    for index, line in enumerate(lines):
        if _UNREAD.match(line):
            unread = index
        elif unread is not None and (place := _PLACE.match(line)):
            text = _line_of(suite, place["file"], int(place["line"]))
            if text is not None:
                lines[unread] = lines[unread].removesuffix("???") + text.strip()
            unread = None
    return "\n".join(lines)


def _line_of(suite: SourceTree, file: str, number: int) -> str | None:
    if file not in suite:
        return None
    lines = suite.files[file].decode("utf-8", "replace").splitlines()
    return lines[number - 1] if number <= len(lines) else None
