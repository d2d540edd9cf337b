"""Names for web addresses."""

import re
import unicodedata


def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    if max_length is not None and max_length < 1:
        raise ValueError("max_length")
    text = title.replace("'", "").replace("’", " ").replace("&", " and ")
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    slug = re.sub("[^a-z0-9]+", "-", text).strip("-")
    if not slug:
        raise ValueError(title)
    if max_length is not None and len(slug) > max_length:
        head = slug[: max_length + 1].rpartition("-")[0]
        slug = head or slug[:max_length]
    return slug
