"""The `gametape` command: a table of verbs, each imported only when it is called.

Listing the verbs here with their one-line help keeps `gametape --help` free of every other import.
"""

import errno
import importlib
import signal
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from gametape.core.errors import GametapeError
from gametape.core.version import VERSION

VERBS = {
    "audit": "Look for reward hacks in finished trajectories.",
    "calibration": "Score an agent's forecasts of its own success.",
    "coach": "Find the turn that went wrong, hint it, and show whether the hint helps.",
    "costs": "Add up what attempts cost, and what was spent on failures.",
    "demo": "Run the whole loop in minutes: mine, attempt, verify, train with and without hints.",
    "desk": "Run goals, threads and heartbeats, and keep running them.",
    "doctor": "Test what this machine can do, and say how to get what is missing.",
    "eval": "Measure how often, how far and at what cost a model succeeds on a suite.",
    "examples": "Copy the example tasks and configurations that came with the package.",
    "feedback": "Record what people did with an agent's work.",
    "goal": "Let an agent work until a protected command succeeds.",
    "heartbeat": "Ask an agent on a schedule or on events, at no cost while nothing happens.",
    "katas": "Make tasks that ask for small Python functions.",
    "mine": "Make tasks from a repository with tests.",
    "models": "List models, and fetch the embedded one.",
    "outbox": "Approve or reject messages that agents have drafted.",
    "report": "Write one HTML page about runs, goals, threads or trajectories.",
    "sandbox": "Run a command that is assumed to be hostile.",
    "solve": "Let a model attempt a task.",
    "task": "Show, check out, check and export task directories.",
    "thread": "Talk with an agent over days; nothing is lost after kill -9.",
    "train": "Train a policy on rewards that can be checked.",
    "trajectory": "Show, check and convert trajectory files.",
    "vault": "Read and review the notes of agents.",
    "verify": "Score a workspace with the tests of its task.",
    "watch": "Detect when an agent falls into a phrase, a template, a loop or silence.",
    "worlds": "Make suites of procedural tool worlds.",
}


_NOT_WRITABLE = (errno.EROFS, errno.EACCES)


class VerbGroup(TyperGroup):
    """A group whose commands live in `gametape.cli.VERB` and are imported on use."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is typer's
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        return typer.main.get_command(importlib.import_module(f"gametape.cli.{cmd_name}").app)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


app = typer.Typer(cls=VerbGroup, add_completion=False, rich_markup_mode=None, no_args_is_help=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gametape {VERSION}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Train and run autonomous coding agents on feedback that can be checked.

    Every verb takes --help and --json. Exit codes: 0 yes; 1 the answer is no; 2 bad input; 3 something is missing.
    """


def main(argv: list[str] | None = None) -> None:
    """Run the command line. Every error that the user can act on becomes one line on stderr and an exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that sandboxes are closed
    try:
        sys.exit(app(args=argv, standalone_mode=False) or 0)
    except GametapeError as error:
        _exit(str(error), error.exit_code)
    except typer.TyperException as error:
        text = error.format_message() if hasattr(error, "format_message") else str(error)
        _exit(f"{text} (try --help)", 2)
    except (typer.Abort, KeyboardInterrupt):
        _exit("interrupted", 130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        from gametape.record.errors import DISK_FULL_ERRNOS

        if error.errno not in (*DISK_FULL_ERRNOS, *_NOT_WRITABLE):
            raise
        text = f"{error.filename or 'a file'}: {error.strerror}"
        _exit(*((f"{text}; free some space and try again", 3) if error.errno in DISK_FULL_ERRNOS else (text, 2)))


def _exit(message: str, code: int) -> None:
    line = "".join(char if char.isprintable() else "?" for char in " ".join(message.split()))
    print(f"gametape: {line}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
