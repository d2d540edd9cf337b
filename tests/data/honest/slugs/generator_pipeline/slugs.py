"""Names for web addresses."""

import itertools
import string
import unicodedata
from collections.abc import Iterable, Iterator

_KEEP = frozenset(string.ascii_lowercase + string.digits)


def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


def _characters(title: str) -> Iterator[str]:
    for character in title:
        match character:
            case "'" | "’":
                continue
            case "&":
                yield from " and "
            case _:
                for piece in unicodedata.normalize("NFKD", character):
                    if piece.isascii():
                        yield from piece.lower()


def _parts(characters: Iterable[str]) -> Iterator[str]:
    for kept, run in itertools.groupby(characters, key=_KEEP.__contains__):
        if kept:
            yield "".join(run)


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    limit = float("inf") if max_length is None else max_length
    if limit < 1:
        raise ValueError(max_length)
    prefixes = list(itertools.accumulate(_parts(_characters(title)), lambda slug, part: f"{slug}-{part}"))
    if not prefixes:
        raise ValueError(f"no slug for {title!r}")
    fitting = [slug for slug in prefixes if len(slug) <= limit]
    return fitting[-1] if fitting else prefixes[0][:max_length]
