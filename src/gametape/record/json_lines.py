"""Files of JSON objects, one a line, that grow while something runs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole line; the last may have been cut off by a crash. None where there is no file."""
    if not path.is_file():
        return
    for line in path.read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            yield entry
