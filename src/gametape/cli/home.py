"""Where state lives: `--home`, else $GAMETAPE_HOME, else the user's data directory."""

import os
from pathlib import Path


def home_directory(given: Path | None) -> Path:
    """The directory, absolute; it is made when something is first written there."""
    chosen = given or Path(os.environ.get("GAMETAPE_HOME") or _data_directory())
    return chosen.expanduser().absolute()


def _data_directory() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "gametape"
