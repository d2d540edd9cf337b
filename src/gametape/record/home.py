"""Where state lives: a directory that was given, else $GAMETAPE_HOME, else the user's data directory."""

import os
import stat
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.record.errors import printable_path

_KERNEL_PLACES = (Path("/proc"), Path("/sys"))
"""Where not even root can make a directory, though it seems so."""


def home_directory(given: Path | None = None) -> Path:
    """The directory, absolute; it is made when something is first written there. Raises `BadInput` where it can be no
    directory: a file is in its way, a link leads nowhere, the place cannot be written."""
    chosen = given or Path(os.environ.get("GAMETAPE_HOME") or _data_directory())
    if "\0" in str(chosen):
        raise BadInput("the home has a NUL character in its name; give --home a directory")
    try:
        chosen = chosen.expanduser().absolute()
    except (RuntimeError, OSError) as error:
        raise BadInput(f"{printable_path(chosen)}: {error}; give --home a directory") from None
    for place in (chosen, *chosen.parents):
        refusal = _refusal_at(place, chosen)
        if refusal:
            raise BadInput(f"{printable_path(place)}: {refusal}; give --home a directory")
        if refusal is not None:
            break
    return chosen


def _refusal_at(place: Path, home: Path) -> str | None:
    """Why there can be no home at or below an existing place, or nothing where there can; None if it does not exist."""
    try:
        kind = os.lstat(place).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return f"cannot be the home ({error.strerror})"
    if stat.S_ISLNK(kind) and not place.exists():
        return f"a link that leads nowhere, where the home {printable_path(home)} is to be"
    if not place.is_dir():
        return f"a file, where the home {printable_path(home)} is to be"
    closed = place in _KERNEL_PLACES or not os.access(place, os.W_OK | os.X_OK)
    if place != home and closed:
        return f"cannot be written, and the home {printable_path(home)} is to be made in it"
    return ""


def _data_directory() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "gametape"
