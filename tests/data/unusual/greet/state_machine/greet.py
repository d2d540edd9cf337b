"""A greeting, one piece at a time."""

from enum import Enum, auto


class State(Enum):
    WORD = auto()
    COMMA = auto()
    NAME = auto()
    END = auto()


def _pieces(name):
    state = State.WORD
    while state is not State.END:
        match state:
            case State.WORD:
                yield "Hello"
                state = State.COMMA
            case State.COMMA:
                yield ", "
                state = State.NAME
            case State.NAME:
                yield name
                yield "!"
                state = State.END


def greet(name):
    """The greeting of a name."""
    return "".join(_pieces(name))
