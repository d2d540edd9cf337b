"""What every verb prints the same way."""

import json
from typing import Any


def emit_json(answer: dict[str, Any]) -> None:
    """Print the answer of `--json`: one object on one line, in ASCII so that any pipe can carry it."""
    print(json.dumps(answer, allow_nan=False), flush=True)


def plain(text: str) -> str:
    """One line that nothing in it can turn into a command to the terminal: for whatever a model, a tool or a file
    said."""
    from gametape.watch.words import printable

    return printable(" ".join(text.split()))
