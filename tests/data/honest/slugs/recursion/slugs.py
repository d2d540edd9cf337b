"""Names for web addresses."""


def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    if "'" in title or "’" in title:
        return slugify(title.replace("'", "’"), max_length)
    return "-".join(words(title)).lower()[:max_length]
