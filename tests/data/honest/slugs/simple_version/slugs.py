"""Names for web addresses."""


def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    # TODO: accents, ampersands and max_length are still missing, 5 of 11 tests pass for now
    return "-".join(words(title)).lower()
