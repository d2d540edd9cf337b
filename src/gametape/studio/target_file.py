"""Where a page is written: over an earlier one of its own kind, and over nothing else."""

from pathlib import Path

from gametape.core.errors import BadInput
from gametape.record.errors import printable_path

_HEAD_BYTES = 2000
"""In so many first bytes a page names what made it."""


def refuse_target(out: Path, generator: str, kind: str) -> None:
    """Raise `BadInput` where something else is than a file that this generator made; `kind` is its name in words."""
    if not out.exists():
        return
    if not out.is_file():
        raise BadInput(f"{printable_path(out)}: not a file; give --out the name of a file")
    with out.open("rb") as file:
        if generator.encode() not in file.read(_HEAD_BYTES):
            raise BadInput(f"{printable_path(out)}: there is a file that is no {kind}; give --out another name")
