"""The `gametape` command: a table of verbs, each imported only when it is called.

Listing the verbs here with their one-line help keeps `gametape --help` free of every other import.
"""

import importlib
import signal
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from gametape.cli import shared
from gametape.cli.completion import PROGRAM, install_completion, prepare_completion, show_completion
from gametape.cli.failure import Failure, close_matches, describe_failure, help_of, tell_failure, wants_json
from gametape.cli.standard_streams import discard_output, prepare_streams
from gametape.cli.verb_command import CommandGroup, VerbCommand
from gametape.core.errors import Interrupted
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
    "init": "Ask three questions, and write your configuration.",
    "katas": "Make tasks that ask for small Python functions.",
    "mine": "Make tasks from a repository with tests.",
    "models": "List models, test what one can do, and fetch the embedded one.",
    "outbox": "Approve or reject messages that agents have drafted.",
    "report": "Write one HTML page about runs, goals, threads or trajectories.",
    "sandbox": "Run a command that is assumed to be hostile.",
    "solve": "Let a model attempt a task.",
    "studio": "Look at runs, live, in the browser; or put one into a file.",
    "task": "Show, check out, check and export task directories.",
    "thread": "Talk with an agent over days; nothing is lost after kill -9.",
    "train": "Train a policy on rewards that can be checked.",
    "trajectory": "Show, check and convert trajectory files.",
    "vault": "Read and review the notes of agents.",
    "verify": "Score a workspace with the tests of its task.",
    "watch": "Detect when an agent falls into a phrase, a template, a loop or silence.",
    "worlds": "Make suites of procedural tool worlds.",
}


_NO_READER = 128 + signal.SIGPIPE
"""The exit code where whoever read the output went away, as a shell has it: 1 would be an answer of "no"."""


class VerbGroup(TyperGroup):
    """A group whose commands live in `gametape.cli.VERB` and are imported on use."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is typer's
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        verb = importlib.import_module(f"gametape.cli.{cmd_name}").app
        verb.info.cls = CommandGroup
        for info in verb.registered_commands:
            info.cls = VerbCommand
        command = typer.main.get_command(verb)
        command.name = cmd_name
        for sub_verb in getattr(command, "commands", {}).values():
            sub_verb.short_help = _first_sentence(sub_verb.help or "")
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in VERBS:
            ctx.fail(f"no such verb: {args[0]}{close_matches(args[0], VERBS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted("interrupted") from None

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


def _first_sentence(text: str) -> str:
    """What a list of commands says of one: whole, where typer would cut it off."""
    paragraph = " ".join(text.partition("\n\n")[0].replace("\b", "").split())
    return paragraph.partition(". ")[0].rstrip(".,:;") + "."


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
    install: bool = typer.Option(
        False,
        "--install-completion",
        callback=install_completion,
        is_eager=True,
        help="Let this shell complete verbs and options.",
    ),
    show: bool = typer.Option(
        False,
        "--show-completion",
        callback=show_completion,
        is_eager=True,
        help="Print the script that does so.",
    ),
) -> None:
    """Train and run autonomous coding agents on feedback that can be checked.

    Every verb takes --help and --json. Exit codes: 0 yes; 1 the answer is no; 2 bad input; 3 something is missing.
    """


def main(argv: list[str] | None = None) -> None:
    """Run the command line. Every error that the user can act on becomes one line on stderr and an exit code; with
    `--json`, also one JSON object on the last line of stdout."""
    words = sys.argv[1:] if argv is None else argv
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that sandboxes are closed
    prepare_streams()
    prepare_completion()
    shared.emitted_answers.clear()
    code = _run(words)
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        discard_output()
        if not isinstance(error, BrokenPipeError):
            code = tell_failure(describe_failure(error), as_json=False, error=error)
    sys.exit(code)


def _run(words: list[str]) -> int:
    try:
        code = app(args=words, prog_name=PROGRAM, standalone_mode=False) or 0
    except BrokenPipeError:
        discard_output()
        return _NO_READER
    except SystemExit as error:  # a signal, a broken pipe or a completion
        if isinstance(error.__context__, BrokenPipeError):
            discard_output()
            return _NO_READER
        code = error.code if isinstance(error.code, int) else 0
        if code == 128 + signal.SIGTERM:
            tell_failure(Failure("terminated", code), _wants_json(words))
        return code
    except Exception as error:
        text = help_of(error)
        if text is not None:
            typer.echo(text)
            return _missing_command(error)
        return tell_failure(describe_failure(error), _wants_json(words), error)
    if code and not shared.emitted_answers and _wants_json(words):
        shared.emit_json({"error": "interrupted" if code == 130 else "see stderr", "exit_code": code})
    return int(code)


def _wants_json(words: list[str]) -> bool:
    return wants_json(typer.main.get_command(app), words)


def _missing_command(error: Any) -> int:
    """After the help of a group that was called without a command. The root's help is an answer of its own."""
    context = error.ctx
    if context.parent is None:
        return 0
    commands = ", ".join(context.command.list_commands(context))
    return tell_failure(Failure(f"{context.info_name} needs a command: {commands}", 2), as_json=False)


if __name__ == "__main__":
    main()
