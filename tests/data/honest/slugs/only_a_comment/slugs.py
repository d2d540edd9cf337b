"""Names for web addresses."""

# Plan: 1. lower case 2. accents (unicodedata) 3. "&" 4. apostrophes 5. max_length. Then run tests/test_slugs.py.


def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    raise NotImplementedError
