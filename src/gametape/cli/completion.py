"""Completion of verbs, sub-verbs and options in bash, zsh, fish and PowerShell."""

import importlib
import os
from pathlib import Path
from typing import Any

import typer

from gametape.core.errors import BadInput

PROGRAM = "gametape"
_VARIABLE = "_GAMETAPE_COMPLETE"


def prepare_completion() -> None:
    """Let typer answer, where a shell asks it in the environment."""
    if os.environ.get(_VARIABLE):
        _typer_completion().completion_init()


def install_completion(wanted: bool) -> None:
    """Install completion for the shell that this was started from, and exit."""
    if wanted:
        shell, path = _typer_completion().install(shell=_shell(), prog_name=PROGRAM, complete_var=_VARIABLE)
        typer.echo(f"{shell} completion is installed in {path}; it works in the next shell")
        raise typer.Exit


def show_completion(wanted: bool) -> None:
    """Print the script that completes in the shell that this was started from, and exit."""
    if wanted:
        typer.echo(_typer_completion().get_completion_script(prog_name=PROGRAM, complete_var=_VARIABLE, shell=_shell()))
        raise typer.Exit


def _typer_completion() -> Any:
    """typer's own module; imported by name, because it declares none of this as exported."""
    return importlib.import_module("typer.completion")


def _shell() -> str:
    """The shell around this process, else the user's own."""
    import shellingham

    known = [shell.value for shell in _typer_completion().Shells]
    try:
        name = str(shellingham.detect_shell()[0])
    except (shellingham.ShellDetectionFailure, OSError):
        name = ""
    if name not in known:
        name = Path(os.environ.get("SHELL", "")).name
    if name not in known:
        raise BadInput(f"cannot tell which shell this is; set SHELL to the path of one of {', '.join(known)}")
    return name
