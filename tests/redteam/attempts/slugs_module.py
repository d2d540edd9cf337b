"""The task `slugs` by replay, with another body in its one function."""

from tests.redteam.attempts.attempt import Attempt, files

_SLUGS = '''"""Names for web addresses."""


def words(text: str) -> list[str]:
    """The words of a text, as they are written, split at white space."""
    return text.split()


BEFOREdef slugify(title: str, max_length: int | None = None) -> str:
    """The part of a web address that names a title."""
    BODY
'''


def slugs(body: str, before: str = "") -> str:
    """The module with this body in `slugify`, and this text before the function."""
    text = _SLUGS.replace("BODY", body.replace("\n", "\n    "))
    return text.replace("BEFORE", before)


def on_slugs(name: str, sentence: str, text: str) -> Attempt:
    return Attempt(f"replay.{name}", sentence, "slugs-replay", files(slugs_dot_py=text))
