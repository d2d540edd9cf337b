"""Names for web addresses."""

import re


def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    return "-".join(re.findall("[a-z0-9]+", title.lower())
