"""The `gametape` command: a table of verbs, each imported only when it is called.

Listing the verbs here with their one-line help keeps `gametape --help` free of every other import.
"""

import importlib
import sys
from typing import Any

import click
import typer
from typer.core import TyperGroup

from gametape import __version__
from gametape.core.errors import GametapeError

VERBS = {
    "demo": "Watch a harmless program and five hostile ones meet the sandbox.",
    "doctor": "Say what this machine can do, and how to get what is missing.",
    "sandbox": "Run a command that is assumed to be hostile.",
    "trajectory": "Check and convert trajectory files.",
}


class VerbGroup(TyperGroup):
    """A group whose commands live in `gametape.cli.VERB` and are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        if ctx.resilient_parsing or getattr(ctx, "listing", False):
            return click.Command(cmd_name, help=VERBS[cmd_name])
        return typer.main.get_command(importlib.import_module(f"gametape.cli.{cmd_name}").app)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


app = typer.Typer(cls=VerbGroup, add_completion=False, rich_markup_mode=None, no_args_is_help=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gametape {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """Train and run autonomous coding agents on feedback that can be checked."""


def main(argv: list[str] | None = None) -> Any:
    """Run the command line. Errors the user can act on become one line on stderr and their exit code."""
    try:
        return app(args=argv)
    except GametapeError as error:
        print(f"gametape: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
