"""`gametape thread`: talk with an agent over days."""

import asyncio
import secrets
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gametape.cli.budgets import (
    AllowHost,
    MaxCost,
    MaxSeconds,
    MaxTokens,
    MaxToolSeconds,
    MaxTurns,
    MaxTurnTokens,
    budgets_from_options,
)
from gametape.cli.model_option import ModelName, choose_model
from gametape.cli.shared import (
    AsJson,
    ConstraintsFile,
    Database,
    Home,
    emit,
    emit_json,
    load_constraints,
    open_desk,
)
from gametape.record.home import home_directory
from gametape.record.installation import command_line

if TYPE_CHECKING:
    from gametape.desk.threads.thread import ThreadDirectory

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Talk with an agent over days; nothing is lost after kill -9.",
)

Name = Annotated[
    str, typer.Argument(metavar="THREAD", help="The id, as `thread list` shows it; a prefix is enough; or `last`.")
]


@app.command()
def new(
    model: ModelName = None,
    title: Annotated[str, typer.Option(help="The title.")] = "",
    workspace: Annotated[
        Path | None, typer.Option(help="The files to work on. They are copied; the directory is not touched.")
    ] = None,
    instructions: Annotated[
        Path | None, typer.Option(help="A file of instructions, beside the AGENTS.md of the workspace.")
    ] = None,
    vault: Annotated[Path | None, typer.Option(help="The vault for its notes (default: HOME/vault).")] = None,
    constraints: ConstraintsFile = None,
    max_turns: MaxTurns = None,
    max_turn_tokens: MaxTurnTokens = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_seconds: MaxSeconds = None,
    max_tool_seconds: MaxToolSeconds = None,
    allow_host: AllowHost = None,
    local_only: Annotated[bool, typer.Option(help="Nothing of it ever leaves this machine.")] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Create a thread. --max-tokens and --max-cost hold for its whole life, the other limits for each answer.

    Example: gametape thread new --title "the flaky test" --model smollm2 --workspace .
    """

    from gametape.desk.threads.lifecycle import create_thread
    from gametape.desk.threads.thread import Thread, new_thread_id
    from gametape.engines.model_aliases import absolute_model_name

    root = home_directory(home)
    name = new_thread_id()
    options = (max_turns, max_turn_tokens, max_tokens, max_cost, max_seconds)
    budgets = budgets_from_options(*options, workspace=workspace)
    thread = Thread(
        thread_id=name,
        title=title,
        model=absolute_model_name(choose_model(model, workspace)),
        created=time.time(),
        vault=str((vault or root / "vault").expanduser().absolute()),
        workspace=str(workspace.absolute()) if workspace else None,
        constraints=load_constraints(constraints),
        budget_tokens=budgets.tokens,
        budget_usd=budgets.cost,
        max_turns=budgets.turns,
        max_turn_tokens=budgets.turn_tokens,
        max_seconds=budgets.seconds,
        max_tool_seconds=max_tool_seconds,
        local_only=local_only,
        hosts=_hosts(allow_host, local_only),
        store=name,
    )
    directory = asyncio.run(create_thread(root, thread, _read_text(instructions) if instructions else ""))
    emit({"thread": name, "directory": str(directory.root), "vault": thread.vault}, as_json, name)
    if not as_json:
        typer.echo(f"next: {command_line('thread', 'say', name)} 'TEXT'", err=True)


def _hosts(hosts: list[str] | None, local_only: bool) -> list[str]:
    from gametape.agent.allowed_hosts import check_hosts
    from gametape.core.errors import BadInput

    if hosts and local_only:
        raise BadInput("--local-only keeps everything on this machine; it cannot go with --allow-host")
    return [*check_hosts(hosts or ())]


@app.command()
def say(
    name: Name,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message; - reads it from stdin.")],
    key: Annotated[
        str | None, typer.Option(help="A message with a known key is not sent again; its answer is returned.")
    ] = None,
    max_turns: MaxTurns = None,
    max_turn_tokens: MaxTurnTokens = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_seconds: MaxSeconds = None,
    anyway: Annotated[bool, typer.Option(help="Continue a thread that is paused.")] = False,
    home: Home = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Send a message and wait for the answer, which goes to stdout; the agent's work is shown on stderr.

    The limits are those of this answer, beside the thread's own. Exit code 0 if it answered; 1 if it takes no messages
    (a spent budget, paused, archived) or did not answer; 3 if something is missing here, such as a key or a server.
    After Ctrl-C or kill -9 the message is kept, and the next process that runs the desk continues with it.

    Example: gametape thread say thread-20261115-3f9a2c "Why does it fail on Mondays?"
    """

    from gametape.agent.limits import RolloutLimits
    from gametape.cli.thread_view import print_answer, show_work
    from gametape.core.errors import BadInput
    from gametape.desk.jobs import Job
    from gametape.desk.runner import run_job
    from gametape.desk.threads.agent_setup import check_open
    from gametape.desk.threads.journal_follower import JournalFollower
    from gametape.desk.threads.thread_record import ThreadRecord
    from gametape.desk.threads.turn_result import find_turn_result
    from gametape.terminal.rollout_view import LiveView

    message = sys.stdin.read() if text == "-" else text
    if not message.strip():
        raise BadInput("the message is empty; give a text")
    _check_text("the message", message)
    _check_text("--key", key or "")
    directory = _thread_directory(name, home)
    thread, record = directory.read(), ThreadRecord.open(directory)
    message_key = f"{thread.thread_id}/said-{key or secrets.token_hex(6)}"
    if find_turn_result(record, message_key) is None:
        check_open(thread, record.digest.usage, anyway)
    payload: dict[str, Any] = {"thread": thread.thread_id, "text": message, "key": message_key, "anyway": anyway}
    payload |= {"budget_tokens": max_tokens, "budget_usd": max_cost, "max_turns": max_turns}
    payload |= {"max_turn_tokens": max_turn_tokens, "max_seconds": max_seconds}
    job = Job("turn", message_key, payload, partition_key=thread.thread_id)
    turns = max_turns or thread.max_turns or RolloutLimits().turns
    follower = JournalFollower(directory.journal, show_work(LiveView(turns)))
    with open_desk(home, database) as desk:
        answer = asyncio.run(run_job(desk, job, follower.poll))
    emit_json(answer | {"key": message_key}) if as_json else print_answer(answer)
    raise typer.Exit(_exit_code(answer))


@app.command()
def show(
    name: Name,
    last: Annotated[int | None, typer.Option(min=1, help="Only the latest N steps.")] = None,
    patch: Annotated[bool, typer.Option(help="Print its changes to the files as a patch instead.")] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Show the steps of a thread, or its changes to the files.

    \b
    Examples:
      gametape thread show thread-20261115-3f9a2c --last 5
      gametape thread show thread-20261115-3f9a2c --patch | git apply
    """

    from gametape.cli.thread_view import print_thread, step_to_dict, thread_to_dict
    from gametape.desk.threads.overview import summarize_thread, thread_patch
    from gametape.desk.threads.thread_record import ThreadRecord

    directory = _thread_directory(name, home)
    if patch and not as_json:
        sys.stdout.flush()
        sys.stdout.buffer.write(thread_patch(directory).encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.flush()
        return
    summaries, steps = summarize_thread(directory), ThreadRecord.open(directory).latest(last)
    if as_json:
        data: dict[str, Any] = thread_to_dict(summaries) | {"trajectory": str(directory.trajectory.absolute())}
        data |= {"steps": [step_to_dict(step) for step in steps]}
        emit_json(data | ({"patch": thread_patch(directory).encode("utf-8", "replace").decode()} if patch else {}))
    else:
        print_thread(summaries, steps)


@app.command("list")
def list_(
    include_archived: Annotated[bool, typer.Option("--all", help="Also archived ones.")] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """List threads, the one that was last active first.

    Example: gametape thread list
    """
    from gametape.cli.thread_view import print_threads, thread_to_dict
    from gametape.desk.threads.overview import list_threads

    summaries = [
        summary for summary in list_threads(home_directory(home)) if include_archived or not summary.thread.archived
    ]
    emit_json({"threads": list(map(thread_to_dict, summaries))}) if as_json else print_threads(summaries)


@app.command()
def fork(
    name: Name,
    at: Annotated[
        int | None, typer.Option(metavar="STEP", min=1, help="The last step of the original to copy.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The title of the new thread.")] = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Create a thread with the same steps and files as another.

    Example: gametape thread fork thread-20261115-3f9a2c --at 12
    """
    from gametape.desk.threads.lifecycle import fork_thread

    directory = fork_thread(home_directory(home), _thread_directory(name, home).root.name, at, title)
    emit({"thread": directory.root.name, "directory": str(directory.root)}, as_json, directory.root.name)


@app.command()
def archive(name: Name, home: Home = None, as_json: AsJson = False) -> None:
    """Close a thread: its record becomes one trajectory file, and it takes no more messages. It can still be forked.

    Example: gametape thread archive thread-20261115-3f9a2c
    """
    from gametape.desk.threads.overview import archive_thread

    directory = _thread_directory(name, home)
    path = archive_thread(directory).absolute()
    emit({"thread": directory.root.name, "trajectory": str(path)}, as_json, str(path))


def _check_text(what: str, text: str) -> None:
    """Refuse bytes that are no text: nothing could store or send them."""
    from gametape.core.errors import BadInput

    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise BadInput(f"{what} is not text in UTF-8")


def _exit_code(answer: dict[str, Any]) -> int:
    if answer["ended"] == "answered":
        return 0
    return int(answer.get("exit_code", 1)) if answer["ended"] == "error" else 1


def _thread_directory(name: str, home: Path | None) -> "ThreadDirectory":
    from gametape.core.errors import BadInput
    from gametape.desk.threads.thread import thread_directory, thread_ids
    from gametape.record.errors import printable_path

    root = home_directory(home)
    if name != "last":
        return thread_directory(root, name)
    directories = [thread_directory(root, known) for known in thread_ids(root)]
    if not directories:
        raise BadInput(f"last: there is no thread in {printable_path(root)} yet")
    return max(directories, key=lambda directory: directory.read().created)


def _read_text(file: Path) -> str:
    from gametape.record.errors import read_error

    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise read_error(file, error) from None
