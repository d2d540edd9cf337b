"""Reading the JSON files beside a record: small ones, and logs with an object a line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput
from gametape.record.errors import printable_path, read_error
from gametape.record.regular_file import open_regular, passed_lines, read_regular

MOST_JSON_BYTES = 16 << 20


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file; empty where there is no file. Raises `BadInput` for anything else."""
    try:
        value = json.loads(read_regular(path, MOST_JSON_BYTES))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise read_error(path, error) from None
    except (ValueError, RecursionError):
        raise BadInput(f"{printable_path(path)}: not JSON") from None
    if not isinstance(value, dict):
        raise BadInput(f"{printable_path(path)}: expected a JSON object")
    return value


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Every line of a log that is a JSON object and not too long; nothing where there is no file. Raises `BadInput` for
    what is no regular file."""
    try:
        with open_regular(path) as file:
            for line, _, _ in passed_lines(file, 0):
                entry = _entry(line)
                if isinstance(entry, dict):
                    yield entry
    except FileNotFoundError:
        return
    except OSError as error:
        raise read_error(path, error) from None


def _entry(line: bytes | None) -> Any:
    """What a line holds; None for one that cannot be read."""
    try:
        return None if line is None else json.loads(line)
    except (ValueError, RecursionError):
        return None
