"""Names for web addresses."""

import re
import unicodedata


def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    parts = _parts(title)
    return "-".join(parts) if max_length is None else _shorten(parts, max_length)


def _parts(title: str) -> list[str]:
    text = title.translate({ord("'"): "", ord("’"): "", ord("&"): " and "})
    parts = re.findall("[a-z0-9]+", unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower())
    if not parts:
        raise ValueError("nothing left")
    return parts


def _shorten(parts: list[str], max_length: int) -> str:
    raise NotImplementedError("I ran out of time here")
