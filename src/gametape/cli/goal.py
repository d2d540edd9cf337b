"""`gametape goal`: let an agent work until a protected command says it is done."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from gametape.desk.goals.goal import GoalDirectory
    from gametape.desk.jobs import Desk

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)

_Home = Annotated[Path | None, typer.Option(help="Where goals are kept ($GAMETAPE_HOME).")]
_Database = Annotated[str | None, typer.Option(help="A PostgreSQL URL ($GAMETAPE_DATABASE); SQLite under --home else.")]
_Json = Annotated[bool, typer.Option("--json", help="One JSON object on the last line of stdout.")]
_Id = Annotated[str, typer.Argument(metavar="ID", help="As `goal list` shows it.")]


@app.callback()
def goal() -> None:
    """Let an agent work until a protected command says it is done."""


@app.command()
def run(
    workspace: Annotated[Path, typer.Option(help="A directory, git repository or not. It is only read.")],
    success: Annotated[str, typer.Option(help="The command that decides, such as 'pytest -q'; join several with &&.")],
    model: Annotated[str, typer.Option(help="smollm2, a directory of weights, openai:MODEL@URL or scripted:FILE.")],
    instruction: Annotated[str, typer.Option(help="What to do; else only to make the command succeed.")] = "",
    budget_tokens: Annotated[int | None, typer.Option(min=1, help="Read and written in all.")] = None,
    deadline: Annotated[
        float | None, typer.Option(min=0.1, max=1e9, help="In seconds from now; survives restarts.")
    ] = None,
    attempts: Annotated[int, typer.Option(min=1, help="How often the agent may say that it is done.")] = 5,
    strict: Annotated[bool, typer.Option(help="Let no test be skipped, xfailed or deselected at all.")] = False,
    apply: Annotated[bool, typer.Option(help="If it is reached, write the result into the workspace.")] = False,
    constraints: Annotated[
        Path | None, typer.Option(help="A TOML file: what the agent must not touch, run or say.")
    ] = None,
    local_only: Annotated[bool, typer.Option(help="Refuse every model that is not on this machine.")] = False,
    python: Annotated[
        Path | None, typer.Option(help="The Python that has the tests' dependencies; else the workspace's own .venv.")
    ] = None,
    home: _Home = None,
    database: _Database = None,
    as_json: _Json = False,
) -> None:
    """Let MODEL work on a copy of --workspace until --success succeeds, judged where the agent never was.

    For pytest commands every test is run again from the pinned files, and no exit code is believed; other commands
    count by their exit code. The result is a branch, a patch, a summary and the trajectory; the workspace stays as it
    is unless --apply is given and the goal is reached.

    Exits 0 if it is reached, 1 if not, 2 for bad input, 3 if something is missing here. Ctrl-C loses nothing:
    `gametape goal resume ID` goes on.

    \b
    Examples:
      gametape goal run --workspace . --success 'pytest -q tests' --model openai:MODEL@http://127.0.0.1:8000/v1
      gametape goal run --workspace . --success 'ruff check . && pytest' --model smollm2 --budget-tokens 200000 --apply
    """
    from gametape.agent.constraints import Constraints, read_constraints
    from gametape.cli.shared import home_directory
    from gametape.desk.desk import open_desk
    from gametape.desk.goals.goal_request import GoalRequest, create_goal

    kept = home_directory(home)
    wish = GoalRequest(
        workspace=workspace,
        success=success,
        model=model,
        instruction=instruction,
        budget_tokens=budget_tokens,
        deadline=deadline,
        attempts=attempts,
        strict=strict,
        apply=apply,
        local_only=local_only,
        python=python,
        constraints=read_constraints(constraints) if constraints else Constraints(),
    )
    with open_desk(kept, database) as desk:
        place = create_goal(kept, wish)
        typer.echo(f"{place.root.name}: taken up", err=True)
        _pursue(desk, place, as_json)


@app.command()
def resume(goal_id: _Id, home: _Home = None, database: _Database = None, as_json: _Json = False) -> None:
    """Go on with a goal that was interrupted, after its last finished turn. One that has ended is only shown.

    Example: gametape goal resume goal-20261115-3f9a2c
    """
    from gametape.cli.shared import home_directory
    from gametape.desk.desk import open_desk
    from gametape.desk.goals.goal import goal_directory

    kept = home_directory(home)
    place = goal_directory(kept, goal_id)
    place.read_goal()
    with open_desk(kept, database) as desk:
        _pursue(desk, place, as_json)


@app.command(name="list")
def list_goals(home: _Home = None, as_json: _Json = False) -> None:
    """Show every goal, the oldest first.

    Example: gametape goal list
    """
    from gametape.cli.shared import emit_json, home_directory
    from gametape.desk.goals.goal import list_goal_directories

    rows = [_row(place) for place in list_goal_directories(home_directory(home))]
    if as_json:
        emit_json({"goals": rows})
        return
    for row in rows:
        typer.echo(f"{row['goal_id']}  {row['state']:<12}  {row['success']}")


@app.command()
def show(goal_id: _Id, home: _Home = None, as_json: _Json = False) -> None:
    """Show one goal: what was asked for, and what came of it.

    Example: gametape goal show goal-20261115-3f9a2c
    """
    from gametape.cli.shared import emit_json, home_directory
    from gametape.desk.goals.goal import goal_directory
    from gametape.watch.text_features import printable

    place = goal_directory(home_directory(home), goal_id)
    answer = place.read_result()
    if as_json:
        emit_json({**_row(place), "goal": place.read_goal().model_dump(mode="json"), **(answer or {})})
    elif answer:
        for line in place.summary.read_text("utf-8").splitlines():
            typer.echo(printable(line))
    else:
        row = _row(place)
        typer.echo(f"{row['goal_id']}: {row['state']}, {row['turns']} turns so far\n{row['instruction']}")


@app.command()
def cancel(goal_id: _Id, home: _Home = None, database: _Database = None, as_json: _Json = False) -> None:
    """Ask for the end of a goal. Its best state is kept. Exits 1 if it has ended already.

    Example: gametape goal cancel goal-20261115-3f9a2c
    """
    from gametape.cli.shared import emit_json, home_directory
    from gametape.desk.desk import open_desk
    from gametape.desk.goals.goal import goal_directory
    from gametape.desk.workflow_engine import request_cancel as ask_for_end

    kept = home_directory(home)
    place = goal_directory(kept, goal_id)
    place.read_goal()
    over = place.read_result() is not None
    if not over:
        with open_desk(kept, database) as desk:
            ask_for_end(desk, goal_id)
    if as_json:
        emit_json({"goal_id": goal_id, "cancelled": not over})
    else:
        typer.echo(f"{goal_id}: {'has ended already' if over else 'its end was asked for'}")
    raise typer.Exit(1 if over else 0)


def _row(place: "GoalDirectory") -> dict[str, Any]:
    goal, answer = place.read_goal(), place.read_result()
    state = ("reached" if answer["reached"] else str(answer["reason"])) if answer else "open"
    turns = place.load_trajectory().turns if place.trajectory.exists() else 0
    return {
        "goal_id": goal.goal_id,
        "state": state,
        "workspace": goal.workspace,
        "success": goal.success,
        "instruction": goal.instruction,
        "turns": turns,
    }


def _pursue(desk: "Desk", place: "GoalDirectory", as_json: bool) -> None:
    import asyncio

    from gametape.cli.shared import emit_json

    name = place.root.name
    try:
        answer = asyncio.run(_performed(desk, place))
    except asyncio.CancelledError:
        typer.echo(f"gametape: interrupted; nothing is lost: gametape goal resume {name}", err=True)
        raise typer.Exit(130) from None
    emit_json(answer) if as_json else _show(answer)
    raise typer.Exit(0 if answer["reached"] else 1)


async def _performed(desk: "Desk", place: "GoalDirectory") -> dict[str, Any]:
    """The first Ctrl-C ends this in order; a second one ends everything."""
    import asyncio
    import signal

    from gametape.cli.goal_view import follower
    from gametape.desk.jobs import Job
    from gametape.desk.runner import run_job

    errand = Job(kind="goal", key=place.root.name, payload={"goal_id": place.root.name})
    running = asyncio.ensure_future(run_job(desk, errand, follower(place).poll))
    loop = asyncio.get_running_loop()

    def stop() -> None:
        running.cancel()
        loop.remove_signal_handler(signal.SIGINT)

    loop.add_signal_handler(signal.SIGINT, stop)
    return await running


def _show(answer: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape

    from gametape.watch.text_features import printable

    console = Console(highlight=False)
    reason = escape(printable(answer["reason"]))
    console.print("[green]reached[/]" if answer["reached"] else f"[red]not reached[/] ({reason})")
    for attempt in answer["attempts"]:
        told = attempt["criterion"]
        counts = f"{told['passed']} passed" if told["collected"] is not None else f"exit code {told['exit_code']}"
        named = ", ".join(sorted({flag["rule"] for flag in attempt["tampering"]}))
        accused = f"  [red]{escape(named)}[/]" if named else ""
        console.print(f"  attempt {attempt['n']}: {counts}, {attempt['tokens']} tokens{accused}")
    if answer.get("not_applied"):
        console.print(f"[red]{escape(printable(answer['not_applied']))}[/]", soft_wrap=True)
    for title in ("branch", "patch", "summary", "trajectory"):
        if answer[title]:
            console.print(f"[dim]{title:<10}[/] {escape(answer[title])}", soft_wrap=True)
