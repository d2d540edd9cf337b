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
    joined = re.sub("['’]", "", title).replace("&", " and ")
    plain = unicodedata.normalize("NFKD", joined).encode("ascii", "ignore").decode().lower()
    parts = re.findall("[a-z0-9]+", plain)
    if not parts:
        raise ValueError(f"nothing of {title!r} can stand in an address")
    return "-".join(parts) if max_length is None else _shortened(parts, max_length)


def _shortened(parts: list[str], max_length: int) -> str:
    slug = parts[0][:max_length]
    for part in parts[1:]:
        if len(slug) + 1 + len(part) > max_length:
            break
        slug = f"{slug}-{part}"
    return slug
