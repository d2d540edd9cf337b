"""Where state lives: a directory that was given, else $GAMETAPE_HOME, else the user's data directory."""

import os
from pathlib import Path

from gametape.core.errors import BadInput


def home_directory(given: Path | None = None) -> Path:
    """The directory, absolute; it is made when something is first written there. Raises `BadInput` where a file is."""
    chosen = (given or Path(os.environ.get("GAMETAPE_HOME") or _data_directory())).expanduser().absolute()
    for parent in (chosen, *chosen.parents):
        if parent.is_file():
            raise BadInput(f"{parent}: a file, where the home {chosen} is to be; give --home a directory")
    return chosen


def _data_directory() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "gametape"
