"""One note."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """A text with tags. Notes are values: they never change."""

    id: int
    text: str
    tags: frozenset[str] = frozenset()

    @property
    def title(self) -> str:
        """The first line."""
        return self.text.partition("\n")[0]
