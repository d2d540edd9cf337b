"""Completion of verbs, sub-verbs and options in bash, zsh, fish and PowerShell."""

import os
from pathlib import Path

import typer

from gametape.core.errors import BadInput

PROGRAM = "gametape"
_VARIABLE = "_GAMETAPE_COMPLETE"


def prepare_completion() -> None:
    """Let typer answer, where a shell asks it in the environment."""
    if os.environ.get(_VARIABLE):
        from typer.completion import completion_init

        completion_init()


def install_completion(wanted: bool) -> None:
    """Install completion for the shell that this was started from, and exit."""
    from typer.completion import install

    if wanted:
        shell, path = install(shell=_shell(), prog_name=PROGRAM, complete_var=_VARIABLE)
        typer.echo(f"{shell} completion is installed in {path}; it works in the next shell")
        raise typer.Exit


def show_completion(wanted: bool) -> None:
    """Print the script that completes in the shell that this was started from, and exit."""
    from typer.completion import get_completion_script

    if wanted:
        typer.echo(get_completion_script(prog_name=PROGRAM, complete_var=_VARIABLE, shell=_shell()))
        raise typer.Exit


def _shell() -> str:
    """The shell around this process, else the user's own."""
    import shellingham
    from typer.completion import Shells

    known = [shell.value for shell in Shells]
    try:
        name = str(shellingham.detect_shell()[0])
    except (shellingham.ShellDetectionFailure, OSError):
        name = ""
    if name not in known:
        name = Path(os.environ.get("SHELL", "")).name
    if name not in known:
        raise BadInput(f"cannot tell which shell this is; set SHELL to the path of one of {', '.join(known)}")
    return name
