"""`--color`: whether a console uses colours."""

from typing import TYPE_CHECKING

from gametape.core.errors import BadInput

if TYPE_CHECKING:
    from rich.console import Console


def open_console(color: str = "auto", width: int | None = None) -> "Console":
    """A console on stdout. `auto` is colours on a terminal, unless NO_COLOR is set."""
    from rich.console import Console

    match color:
        case "auto":
            return Console(highlight=False, markup=False, width=width)
        case "always":
            return Console(
                highlight=False, markup=False, width=width, force_terminal=True, color_system="standard", no_color=False
            )
        case "never":
            return Console(highlight=False, markup=False, width=width, no_color=True)
    raise BadInput(f"--color {color}: expected auto, always or never")
