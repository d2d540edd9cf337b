"""`gametape goal`: let an agent work until a protected command succeeds."""

import asyncio
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
from gametape.cli.model_option import ModelName, choose_model, route_lines
from gametape.cli.shared import (
    AsJson,
    ConstraintsFile,
    Database,
    Home,
    LocalOnly,
    cancel_on_interrupt,
    emit,
    emit_json,
    load_constraints,
    open_desk,
)
from gametape.record.home import home_directory
from gametape.record.installation import command_line

if TYPE_CHECKING:
    from gametape.desk.goals.goal import GoalDirectory
    from gametape.desk.jobs import Desk

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Let an agent work until a protected command succeeds.",
)

_Id = Annotated[str, typer.Argument(metavar="ID", help="The id, as `goal list` shows it, or `last`, the newest.")]

_STATES = {
    "attempts": "not reached",
    "budget": "not reached: budget spent",
    "deadline": "not reached: time is up",
}
"""What a table says of reasons for which a goal ended without success."""


@app.command()
def run(
    workspace: Annotated[
        Path, typer.Option(help="The directory to work on, a git repository or not. It is only read.")
    ],
    success: Annotated[
        str, typer.Option(help="The command that has to succeed, such as 'pytest -q'; join several with &&.")
    ],
    model: ModelName = None,
    instruction: Annotated[
        str,
        typer.Option(help="What to do (default: make the command succeed, which is nothing if it does already)."),
    ] = "",
    max_turns: MaxTurns = None,
    max_turn_tokens: MaxTurnTokens = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_seconds: MaxSeconds = None,
    max_tool_seconds: MaxToolSeconds = None,
    attempts: Annotated[int, typer.Option(min=1, help="How often the agent may call its work finished.")] = 5,
    strict: Annotated[bool, typer.Option(help="Allow no skipped, xfailed or deselected test.")] = False,
    apply: Annotated[bool, typer.Option(help="Write the result into the workspace if the goal is reached.")] = False,
    allow_host: AllowHost = None,
    constraints: ConstraintsFile = None,
    local_only: LocalOnly = False,
    python: Annotated[
        Path | None, typer.Option(help="The Python with the tests' dependencies (default: the workspace's .venv).")
    ] = None,
    held_out: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Tests that the agent never sees, and that have to pass as well."),
    ] = None,
    product: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="A path that may be changed, though the command reads it as if it checked."),
    ] = None,
    pin: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="A path that is part of the check: it is judged as it is.")
    ] = None,
    home: Home = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Let MODEL work on a copy of --workspace until --success succeeds in a sandbox that the agent cannot reach.

    For pytest commands every test is run again from the pinned files, and the command itself has to exit with 0; others
    count by their exit code, over the pinned version of every file that they read and that is not the product. The
    result is a branch, a patch, a summary and the trajectory; the workspace stays as it is unless --apply is given and
    the goal is reached.

    Exits 0 if it is reached, 1 if not, 2 for bad input, 3 if something is missing here. After Ctrl-C,
    `gametape goal resume ID` continues.

    \b
    Examples:
      gametape goal run --workspace . --success 'pytest -q tests' --model openai:MODEL@http://127.0.0.1:8000/v1
      gametape goal run --workspace . --success 'ruff check . && pytest' --model smollm2 --max-tokens 200000 --apply
    """
    from gametape.desk.goals.check_text import check_lines
    from gametape.desk.goals.goal_request import GoalRequest, create_goal
    from gametape.watch.text_features import printable

    root = home_directory(home)
    options = (max_turns, max_turn_tokens, max_tokens, max_cost, max_seconds)
    budgets = budgets_from_options(*options, workspace=workspace, timed=False)
    request = GoalRequest(
        workspace=workspace,
        success=success,
        model=choose_model(model, workspace),
        instruction=instruction,
        budget_tokens=budgets.tokens,
        budget_usd=budgets.cost,
        deadline=budgets.seconds,
        max_turns=budgets.turns,
        max_turn_tokens=budgets.turn_tokens,
        max_tool_seconds=max_tool_seconds,
        attempts=attempts,
        strict=strict,
        apply=apply,
        local_only=local_only,
        hosts=tuple(allow_host or ()),
        python=python,
        held_out=held_out,
        product=tuple(product or ()),
        pin=tuple(pin or ()),
        constraints=load_constraints(constraints),
    )
    with open_desk(root, database) as desk:
        directory = create_goal(root, request, warn=lambda text: typer.echo(f"gametape: {text}", err=True))
        typer.echo(f"{directory.root.name}: created", err=True)
        for line in check_lines(directory):
            typer.echo(printable(line), err=True)
        _pursue(desk, directory, as_json)


@app.command()
def resume(goal_id: _Id, home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """Continue an interrupted goal after its last finished turn. A goal that has ended is only shown.

    Example: gametape goal resume goal-20261115-3f9a2c
    """
    root = home_directory(home)
    directory = _find_goal(root, goal_id)
    directory.read_goal()
    with open_desk(root, database) as desk:
        _pursue(desk, directory, as_json)


@app.command(name="list")
def list_goals(home: Home = None, as_json: AsJson = False) -> None:
    """Show every goal, the oldest first.

    Example: gametape goal list
    """
    from gametape.desk.goals.goal import list_goal_directories

    rows = [_row(directory) for directory in list_goal_directories(home_directory(home))]
    if as_json:
        emit_json({"goals": rows})
        return
    from gametape.cli.vault_view import age
    from gametape.terminal.table import Column, numbers, print_table

    cells = [
        (
            row["goal_id"],
            _STATES.get(row["state"], row["state"]),
            Path(row["workspace"]).name,
            f"{age(row['created'])} ago",
            str(row["turns"]),
            str(row["tokens"]),
            row["success"],
        )
        for row in rows
    ]
    words = [Column("goal"), Column("state", wraps=True), Column("workspace", wraps=True), Column("created")]
    if cells:
        print_table([*words, *numbers("turns", "tokens"), Column("success", wraps=True)], cells)
    else:
        typer.echo("no goals yet")


@app.command()
def show(goal_id: _Id, home: Home = None, as_json: AsJson = False) -> None:
    """Show a goal: the request and the result.

    Example: gametape goal show goal-20261115-3f9a2c
    """
    from gametape.watch.text_features import printable

    directory = _find_goal(home_directory(home), goal_id)
    answer = directory.read_result()
    if as_json:
        emit_json({**_row(directory), "goal": directory.read_goal().model_dump(mode="json"), **(answer or {})})
    elif answer:
        for line in directory.summary.read_text("utf-8").splitlines():
            typer.echo(printable(line))
    else:
        row = _row(directory)
        typer.echo(f"{row['goal_id']}: {row['state']}, {row['turns']} turns so far\n{row['instruction']}")


@app.command()
def cancel(goal_id: _Id, home: Home = None, database: Database = None, as_json: AsJson = False) -> None:
    """Cancel a goal. Its best state is kept. Exits 1 if it has ended already.

    Example: gametape goal cancel goal-20261115-3f9a2c
    """
    from gametape.desk.workflow_engine import request_cancel

    root = home_directory(home)
    directory = _find_goal(root, goal_id)
    goal_id = directory.read_goal().goal_id
    ended = directory.read_result() is not None
    if not ended:
        with open_desk(root, database) as desk:
            request_cancel(desk, goal_id)
    emit(
        {"goal_id": goal_id, "cancelled": not ended},
        as_json,
        f"{goal_id}: {'has ended already' if ended else 'cancelled'}",
    )
    raise typer.Exit(1 if ended else 0)


def _find_goal(home: Path, goal_id: str) -> "GoalDirectory":
    """The directory of a goal by its id, or of the newest for `last`."""
    from gametape.core.errors import BadInput
    from gametape.desk.goals.goal import goal_directory, list_goal_directories
    from gametape.record.errors import printable_path

    if goal_id != "last":
        return goal_directory(home, goal_id)
    directories = list_goal_directories(home)
    if not directories:
        raise BadInput(f"last: there is no goal in {printable_path(home)} yet")
    return directories[-1]


def _row(directory: "GoalDirectory") -> dict[str, Any]:
    from gametape.agent.recorded_steps import usage_from_steps

    goal, answer = directory.read_goal(), directory.read_result()
    state = ("reached" if answer["reached"] else str(answer["reason"])) if answer else "open"
    steps = directory.load_trajectory().steps if directory.trajectory.exists() else []
    usage = usage_from_steps(steps)
    return {
        "goal_id": goal.goal_id,
        "state": state,
        "workspace": goal.workspace,
        "success": goal.success,
        "instruction": goal.instruction,
        "turns": usage.turns,
        "tokens": usage.tokens,
        "created": goal.created,
    }


def _pursue(desk: "Desk", directory: "GoalDirectory", as_json: bool) -> None:

    from gametape.cli.goal_view import goal_follower
    from gametape.core.errors import Interrupted
    from gametape.desk.jobs import Job
    from gametape.desk.runner import run_job

    name = directory.root.name
    job = Job(kind="goal", key=name, payload={"goal_id": name})
    try:
        answer = asyncio.run(cancel_on_interrupt(run_job(desk, job, goal_follower(directory).poll)))
    except asyncio.CancelledError:
        raise Interrupted(f"interrupted; nothing is lost: {command_line('goal', 'resume', name)}") from None
    emit(answer, as_json, _show)
    raise typer.Exit(0 if answer["reached"] else answer.get("exit_code", 1))


def _show(answer: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape

    from gametape.desk.goals.attempt_text import count_text, end_text, shortcomings
    from gametape.watch.text_features import printable

    console = Console(highlight=False)
    note = f" ({escape(printable(answer['reason']))})"
    if answer["reason"] == "reached":
        note = " (the command succeeded before, too)" if answer.get("held_before") else ""
    state = (
        f"[green]reached[/]{note}"
        if answer["reached"]
        else f"[red]not reached[/]: {escape(printable(end_text(answer)))}"
    )
    console.print(state, soft_wrap=True)
    for warning in answer.get("warnings", []):
        console.print(f"[yellow]{escape(printable(warning))}[/]", soft_wrap=True)
    for attempt in answer["attempts"]:
        named = ", ".join(sorted({flag["rule"] for flag in attempt["tampering"]}))
        accused = f"  [red]{escape(named)}[/]" if named else ""
        console.print(f"  attempt {attempt['n']}: {count_text(attempt)}, {attempt['tokens']} tokens{accused}")
        for line in shortcomings(attempt):
            console.print(f"    [yellow]{escape(printable(line))}[/]", soft_wrap=True)
    if detail := answer.get("assurance_detail"):
        console.print(f"[dim]{escape(printable(detail))}[/]", soft_wrap=True)
    for line in route_lines(answer.get("models", [])):
        console.print(f"[dim]{escape(line)}[/]", soft_wrap=True)
    if answer.get("not_applied"):
        console.print(f"[red]{escape(printable(answer['not_applied']))}[/]", soft_wrap=True)
    for title in ("branch", "patch", "summary", "trajectory"):
        if answer[title]:
            console.print(f"[dim]{title:<10}[/] {escape(answer[title])}", soft_wrap=True)
