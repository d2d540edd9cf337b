"""Names for web addresses."""

import re
import unicodedata

def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    if max_length is not None and max_length < 1:
        raise ValueError("max_length must be at least 1")
    text = unicodedata.normalize("NFKD", title.replace("'", "").replace("’", "").replace("&", " and "))
    slug = re.sub("[^a-z0-9]+", "-", text.encode("ascii", "ignore").decode().lower()).strip("-")
    if not slug:
        raise ValueError("nothing left")
    return slug[:max_length].strip("-")
