"""One note."""

from dataclasses import dataclass, field


@dataclass
class Note:
    """A text with tags."""

    number: int
    text: str
    tags: set[str] = field(default_factory=set)

    @property
    def title(self) -> str:
        """The first line."""
        return self.text.splitlines()[0]
