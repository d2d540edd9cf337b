"""Names for web addresses."""

import re
import unicodedata


class Pipe:
    def __init__(self, function):
        self.function = function

    def __ror__(self, value):
        return self.function(value)

    def __call__(self, *rest):
        return Pipe(lambda value: self.function(value, *rest))


drop = Pipe(lambda text, characters: "".join(c for c in text if c not in characters))
spell = Pipe(lambda text: text.replace("&", " and "))
plain = Pipe(lambda text: unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii"))
lower = Pipe(str.lower)
split = Pipe(lambda text: re.split(r"[^a-z0-9]+", text))
solid = Pipe(lambda parts: [part for part in parts if part])
join = Pipe("-".join)

def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


@Pipe
def fit(parts, length):
    while length and len(parts) > 1 and len(parts | join) > length:
        parts = parts[:-1]
    return [parts[0][:length], *parts[1:]] if length else parts


@Pipe
def some(parts):
    if not parts:
        raise ValueError("an empty title has no address")
    return parts


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    if max_length is not None and max_length < 1:
        raise ValueError(f"max_length is {max_length}")
    return title | drop("'’") | spell | plain | lower | split | solid | some | fit(max_length) | join
