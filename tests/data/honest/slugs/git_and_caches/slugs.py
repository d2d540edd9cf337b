"""Names for web addresses."""

import re
import unicodedata

__all__ = ["SlugError", "slugify", "words"]


def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


class SlugError(ValueError, LookupError):
    """Nothing to build a slug from."""


class _Slugifier:
    __slots__ = ("_pattern", "_separator")

    def __init__(self, separator: str = "-") -> None:
        self._separator = separator
        self._pattern = re.compile(r"[^a-z0-9]+")

    def __call__(self, title: str, max_length: int | None = None) -> str:
        if max_length is not None and max_length < 1:
            raise SlugError("max_length")
        text = title.replace("'", "").replace("’", "").replace("&", " and ")
        text = unicodedata.normalize("NFKD", text).encode("ascii", errors="ignore").decode().casefold()
        slug = self._pattern.sub(self._separator, text).strip(self._separator)
        if not slug:
            raise SlugError(title)
        return slug if max_length is None else self._cut(slug, max_length)

    def _cut(self, slug: str, length: int) -> str:
        if len(slug) <= length:
            return slug
        head, _, _ = slug[: length + 1].rpartition(self._separator)
        return head or slug[:length]

    def __repr__(self) -> str:
        return f"<slugify {self._separator!r}>"


slugify = _Slugifier()
