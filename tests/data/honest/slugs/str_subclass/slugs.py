"""Names for web addresses."""

import re
import unicodedata


class Slug(str):
    """A slug knows its words. It compares like any other text."""

    __slots__ = ()

    @property
    def words(self) -> list[str]:
        return self.split("-")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, str):
            return NotImplemented
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    if max_length is not None and max_length < 1:
        raise ValueError("max_length")
    title = re.sub(r"[’']", "", title).replace("&", " and ")
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    parts = re.findall(r"[a-z0-9]+", plain)
    if not parts:
        raise ValueError("nothing left of the title")
    if max_length is not None:
        while len("-".join(parts)) > max_length and len(parts) > 1:
            del parts[-1]
        parts[0] = parts[0][:max_length]
    return str(Slug("-".join(parts)))
