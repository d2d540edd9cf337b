"""Names for web addresses."""

import unicodedata


class _Table(dict):
    """Fills itself: what every character becomes."""

    def __missing__(self, code):
        character = chr(code)
        if character in "'\N{RIGHT SINGLE QUOTATION MARK}":
            turned = ""
        elif character == "&":
            turned = " and "
        else:
            decomposed = unicodedata.normalize("NFKD", character)
            ascii_only = decomposed.encode("ascii", "ignore").decode()
            if ascii_only:
                turned = "".join(c.lower() if c.isalnum() else " " for c in ascii_only)
            else:
                turned = ""
        self[code] = turned
        return turned


_TABLE = _Table()

def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    if max_length is not None and not max_length >= 1:
        raise ValueError("max_length must be at least 1")
    parts = words(title.translate(_TABLE))
    if not parts:
        raise ValueError("the title leaves nothing")
    slug = parts[0] if max_length is None else parts[0][:max_length]
    for part in parts[1:]:
        longer = f"{slug}-{part}"
        if max_length is not None and len(longer) > max_length:
            break
        slug = longer
    return slug
