"""Names for web addresses."""

import unicodedata

# What has a meaning of its own. "&" is read aloud, apostrophes are not.
SPECIAL = str.maketrans({"&": " and ", "'": None, "’": None})


def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title.

    >>> slugify("R & D")
    'r-and-d'
    >>> slugify("Hello World")
    'hello-world'
    >>> slugify("Café Déjà Vu")
    'cafe-deja-vu'
    """
    if max_length is not None and max_length < 1:
        raise ValueError("max_length must be 1 or more")
    folded = unicodedata.normalize("NFKD", title.translate(SPECIAL)).encode("ascii", "ignore").decode("ascii").lower()
    parts = "".join(c if c.isalnum() else " " for c in folded).split()
    if not parts:
        raise ValueError("empty slug")
    if max_length is None:
        return "-".join(parts)
    while len(parts) > 1 and len("-".join(parts)) > max_length:
        parts.pop()
    return "-".join(parts)[:max_length]


if __name__ == "__main__":
    import doctest
    import sys

    sys.exit(doctest.testmod().failed)
