"""Names for web addresses."""

import functools
import re
import sys
import unicodedata

DEBUG = "--debug-slugs" in sys.argv


def _покажи(что, *значения):
    # печатает только при отладке
    if DEBUG:
        print(f"[slugs] {что}:", *значения, file=sys.stderr)

def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


@functools.lru_cache(maxsize=4096)
def _части(title: str) -> tuple[str, ...]:
    # апострофы исчезают, амперсанд становится словом
    text = title.translate({0x27: None, 0x2019: None, 0x26: " and "})
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    _покажи("после замены", repr(text))
    return tuple(re.findall("[a-z0-9]+", text))


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    части = list(_части(title))
    if not части:
        raise ValueError("пустой заголовок")
    if max_length is None:
        return "-".join(части)
    if max_length < 1:
        raise ValueError("max_length меньше единицы")
    while len(части) > 1 and sum(map(len, части)) + len(части) - 1 > max_length:
        _покажи("не помещается", части.pop())
    return "-".join(части)[:max_length]
