"""A greeting."""

from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=False, order=True)
class Message:
    name: str
    word: str = field(default="Hello", compare=False)

    @cached_property
    def text(self):
        return f"{self.word}, {self.name}!"

    def __str__(self):
        return self.text


def greet(name):
    """The greeting of a name."""
    return str(Message(name))
