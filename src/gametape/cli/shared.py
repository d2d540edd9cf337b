"""Where state lives: `--home`, else $GAMETAPE_HOME, else the user's data directory."""

import json
import os
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput


def home_directory(given: Path | None) -> Path:
    """The directory, absolute; it is made when something is first written there. Raises `BadInput` where a file is."""
    chosen = (given or Path(os.environ.get("GAMETAPE_HOME") or _data_directory())).expanduser().absolute()
    for place in (chosen, *chosen.parents):
        if place.is_file():
            raise BadInput(f"{place}: a file, where the home {chosen} is to be; give --home a directory")
    return chosen


def _data_directory() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "gametape"


def emit_json(answer: dict[str, Any]) -> None:
    """Print the answer of `--json`: one object on one line, in ASCII so that any pipe can carry it."""
    print(json.dumps(answer, allow_nan=False), flush=True)
