"""What every verb prints the same way."""

import json
from typing import Any


def emit_json(answer: dict[str, Any]) -> None:
    """Print the answer of `--json`: one object on one line, in ASCII so that any pipe can carry it."""
    print(json.dumps(answer, allow_nan=False), flush=True)
