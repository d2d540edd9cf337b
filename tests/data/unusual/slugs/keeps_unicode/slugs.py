"""Names for web addresses."""

import re
import sys

if sys.version_info >= (3, 7):
    _LETTERS = re.compile(r"[^\W_]+")
else:
    _LETTERS = re.compile(r"[a-zA-Z0-9]+")

def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    parts = _LETTERS.findall(title.replace("'", "").replace("’", "").replace("&", " and ").casefold())
    if not parts or (max_length is not None and max_length < 1):
        raise ValueError("no slug")
    return "-".join(parts)
