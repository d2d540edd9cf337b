"""Names for web addresses."""

import re
import unicodedata

_MONSTER = re.compile(
    r"""
    (?P<gone>['\u2019])             # apostrophes vanish
  | (?P<and>&)                      # an ampersand is a word
  | (?P<word>[A-Za-z0-9])           # stays, in lower case
  | (?P<edge>.)                     # anything else parts words
    """,
    re.VERBOSE | re.DOTALL,
)
_TURNED = {"gone": lambda text: "", "and": lambda text: " and ", "word": str.lower, "edge": lambda text: " "}

def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    if max_length is not None and max_length < 1:
        raise ValueError("no room")
    kept = "".join(c for c in unicodedata.normalize("NFKD", title) if c in "\u2019" or ord(c) < 128)
    parts = words(_MONSTER.sub(lambda found: _TURNED[found.lastgroup](found[0]), kept))
    if not parts:
        raise ValueError("nothing is left")
    if max_length is None:
        return "-".join(parts)
    while len(parts) > 1 and len("-".join(parts)) > max_length:
        parts.pop()
    return "-".join(parts)[:max_length]
