"""Reading the small JSON files beside a record."""

import json
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput
from gametape.record.errors import printable_path, read_error
from gametape.record.regular_file import read_regular

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
