"""Reading files of JSON objects, one a line, that grow while something runs (`append_log` writes them)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Every line that is a JSON object; a crash may have cut off the last. Nothing where there is no file."""
    if not path.is_file():
        return
    for line in path.read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            yield entry
