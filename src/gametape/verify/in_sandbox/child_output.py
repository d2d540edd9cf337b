"""How a child reports to its parent: one line of JSON per message.

The functions that write are bound before hostile code runs, and the encoder is one of their own, so that replacing
`json.dumps` or what it uses later has no effect.
"""

import json
import os
from collections.abc import Callable
from typing import Any

_LONGEST = 500


def make_writers(out: int) -> tuple[Callable[[dict[str, Any]], None], Callable[[str, str, str, int], None]]:
    """Two functions: one writes any document, one writes an event."""
    write, encode = os.write, json.JSONEncoder().encode

    def tell(document: dict[str, Any]) -> None:
        line = encode(document).encode() + b"\n"
        while line:
            line = line[write(out, line) :]

    def tell_event(kind: str, detail: str, path: str, line: int) -> None:
        tell({"event": kind, "detail": detail[:_LONGEST], "file": path, "line": line})

    return tell, tell_event
