"""Names for web addresses."""

import functools
import unicodedata

ACCENTS = {
    "à": "a", "á": "a", "â": "a", "ã": "a", "ä": "a", "å": "a", "ç": "c", "è": "e", "é": "e", "ê": "e", "ë": "e",
    "ì": "i", "í": "i", "î": "i", "ï": "i", "ñ": "n", "ò": "o", "ó": "o", "ô": "o", "ö": "o", "ù": "u", "ú": "u",
    "û": "u", "ü": "u", "ý": "y", "ÿ": "y",
}  # fmt: skip


def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


@functools.lru_cache(maxsize=512)
def _plain(character: str) -> str:
    """One character without its accent; the common ones are looked up, the rest is decomposed."""
    if character.isascii():
        return character
    if character in ACCENTS:
        return ACCENTS[character]
    return "".join(part for part in unicodedata.normalize("NFKD", character) if part.isascii())


@functools.cache
def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    if max_length is not None and max_length < 1:
        raise ValueError("max_length is below 1")
    parts: list[str] = [""]
    for character in title.lower():
        if character in "'’":
            continue
        if character == "&":
            parts += ["and", ""]
            continue
        plain = _plain(character).lower()
        for letter in plain:
            if letter.isalnum():
                parts[-1] += letter
            elif parts[-1]:
                parts.append("")
    parts = [part for part in parts if part]
    if not parts:
        raise ValueError(f"{title!r} leaves nothing")
    if max_length is None:
        return "-".join(parts)
    slug = parts[0][:max_length]
    for part in parts[1:]:
        if len(slug) + len(part) + 1 > max_length:
            return slug
        slug += "-" + part
    return slug
