"""Cut long text in the middle: the beginning says what it is, the end says how it went.

A note in between says how much is missing.
"""

MAX_CHARACTERS = 16_000
"""The default limit for a tool's output."""

_NOTE = "[... {characters:,} characters ({lines:,} lines) cut; narrow the command or read the file in parts ...]"
_LONGEST_NOTE = len(_NOTE.format(characters=10**12, lines=10**12)) + 2


def truncate(text: str, max_characters: int = MAX_CHARACTERS) -> str:
    """The text, or its beginning and end with a note between them; never more than `max_characters`.

    Cuts at line ends where that does not cost more than half of a side. Where there is not even room for the note,
    what is left is the beginning.
    """
    if len(text) <= max_characters:
        return text
    room = max_characters - _LONGEST_NOTE
    if room < 2:
        return text[: max(0, max_characters)]
    head, tail = text[: room - room // 2], text[len(text) - room // 2 :]
    if (end := head.rfind("\n")) >= len(head) // 2:
        head = head[: end + 1]
    if 0 <= (start := tail.find("\n")) < len(tail) // 2:
        tail = tail[start + 1 :]
    cut = text[len(head) : len(text) - len(tail)]
    note = _NOTE.format(characters=len(cut), lines=cut.count("\n"))
    before = "" if head.endswith("\n") else "\n"
    return f"{head}{before}{note}\n{tail}"
