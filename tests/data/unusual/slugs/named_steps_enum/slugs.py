"""Names for web addresses."""

import enum
import re
import unicodedata
from functools import partial, reduce


class Step(enum.Enum):
    APOSTROPHES = partial(re.sub, r"['’]", "")
    AMPERSANDS = partial(re.sub, "&", " and ")
    ACCENTS = partial(unicodedata.normalize, "NFKD")
    ASCII = partial(re.sub, r"[^\x00-\x7f]", "")
    CASE = partial(re.sub, "[A-Z]", lambda found: found[0].lower())
    HYPHENS = partial(re.sub, "[^a-z0-9]+", "-")

    def __call__(self, text):
        return self.value(text)

def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    slug = reduce(lambda text, step: step(text), Step, title).strip("-")
    if not slug or (max_length is not None and max_length < 1):
        raise ValueError(title)
    if max_length is None or len(slug) <= max_length:
        return slug
    return slug[: max_length + 1].rpartition("-")[0] or slug[:max_length]
