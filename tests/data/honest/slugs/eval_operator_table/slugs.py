"""Names for web addresses."""

import re
import unicodedata

# name: expression over `text`; kept as text so that the steps can be printed with --explain
STEPS = {
    "drop apostrophes": "re.sub(\"['’]\", '', text)",
    "spell out ampersands": "text.replace('&', ' and ')",
    "decompose": "unicodedata.normalize('NFKD', text).encode('ascii', 'ignore').decode()",
    "lower": "text.lower()",
}
_COMPILED = {name: eval(f"lambda text: {source}") for name, source in STEPS.items()}  # noqa: S307


def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


def slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    if max_length is not None and not max_length >= 1:
        raise ValueError(f"max_length={max_length}")
    text = title
    for step in _COMPILED.values():
        text = step(text)
    parts = re.split(r"[^a-z0-9]+", text)
    parts = [part for part in parts if part]
    if not parts:
        raise ValueError("a title needs a letter or a digit")
    best = parts[0] if max_length is None else parts[0][:max_length]
    for end in range(2, len(parts) + 1):
        candidate = "-".join(parts[:end])
        if max_length is not None and len(candidate) > max_length:
            break
        best = candidate
    return best


if __name__ == "__main__":
    for number, (name, source) in enumerate(STEPS.items(), start=1):
        print(f"{number}. {name}: {source}")
