"""How much tool output fits into a model's window: for one call, for one read of a file, and for a whole turn."""

from dataclasses import dataclass

_MOST_OUTPUT, _MOST_READ = 30_000, 65_536
_LEAST = 500
"""Characters that every call of a turn may answer with, however many calls there are."""


@dataclass(frozen=True)
class OutputRoom:
    """In characters. Four of them are about one token."""

    call: int
    """The output of one tool call; more is cut in the middle."""
    read: int
    """What one call of `read` shows of a file."""
    turn: int
    """The outputs of all calls of a turn together: half of the window."""

    @classmethod
    def for_window(cls, window: int, output_characters: int | None = None) -> "OutputRoom":
        """A sixteenth of the window for a call and an eighth for a read; small windows give a quarter to each."""
        call = output_characters or min(_MOST_OUTPUT, max(window // 4, min(8_000, window)))
        return cls(call, min(_MOST_READ, max(window // 2, min(4_000, window))), 2 * window)

    def for_call(self, used: int, calls_left: int, is_read: bool) -> int:
        """What the next call may answer with, when `used` characters are taken and so many calls are left with it."""
        share = max(_LEAST, (self.turn - used) // max(1, calls_left))
        return min(max(self.call, self.read) if is_read else self.call, share)
