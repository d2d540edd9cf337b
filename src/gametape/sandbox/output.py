"""What a hostile program printed, made safe to store and to show.

Bytes are counted against a cap, decoded with replacement, stripped of terminal control, and cleared of the values of
secret-looking variables of the host. The sandbox never had those values; a bind or a copied file might.
"""

import re
from collections.abc import Mapping

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE|SESSION|PRIVATE|DSN|DATABASE_URL)", re.I)
_SHORTEST_SECRET = 6
MASK = "[masked]"

_TERMINAL_CONTROL = re.compile(
    r"""
      (?: \x1b [\]PX^_] | [\x90\x98\x9d-\x9f] )            # a title, a link, a private string ...
      [^\x07\x1b\x90\x98\x9c-\x9f\n]* (?: \x07 | \x1b\\ | \x9c )  # ... that ends; if not, it must not hide what follows
    | (?: \x1b \[ | \x9b ) [0-?]* [ -/]* [@-~]?             # cursor, colour, screen
    | \x1b [ -/]* [0-~]?                                    # everything else behind an escape
    | [\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]                 # lone control characters
    | [\u202a-\u202e\u2066-\u2069]                          # text that reorders text
    | \r (?!\n)                                             # overwriting the line
    """,
    re.VERBOSE,
)


class OutputCapture:
    """The output of one command: both streams against one cap."""

    def __init__(self, cap: int) -> None:
        self._room = cap
        self.streams = {"stdout": bytearray(), "stderr": bytearray(), "audit": bytearray()}

    def add(self, stream: str, data: bytes) -> bool:
        """Keep what fits; False when the cap is passed."""
        self.streams[stream] += data[: self._room]
        fits = len(data) <= self._room
        self._room = max(0, self._room - len(data))
        return fits


def secret_values(environment: Mapping[str, str]) -> list[str]:
    """The values worth masking, longest first so that one inside another is masked whole."""
    values = {value for name, value in environment.items() if _SECRET_NAME.search(name)}
    return sorted((value for value in values if len(value) >= _SHORTEST_SECRET), key=len, reverse=True)


def sanitize(data: bytes | str, secrets_to_mask: list[str]) -> str:
    """Text that is safe to store, to print and to show to a model."""
    raw = (
        data if isinstance(data, bytes) else data.encode("utf-8", errors="replace")
    )  # half characters cannot be stored
    text = _TERMINAL_CONTROL.sub("", raw.decode("utf-8", errors="replace"))
    for value in secrets_to_mask:
        text = text.replace(value, MASK)
    return text
