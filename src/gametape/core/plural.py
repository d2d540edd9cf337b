"""Numbers of things in English: `1 update`, `2 updates`."""


def count_of(number: int, noun: str, plural: str = "") -> str:
    """The number with its noun, in the plural unless it is one thing."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
