"""`gametape solve`: let a model attempt a task."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gametape.cli.budgets import (
    AllowHost,
    MaxCost,
    MaxSeconds,
    MaxTokens,
    MaxToolSeconds,
    MaxTurns,
    MaxTurnTokens,
    limits_from_options,
)
from gametape.cli.model_option import ModelName, Temperature, choose_model, choose_sampling, route_lines
from gametape.cli.shared import (
    AsJson,
    ConstraintsFile,
    Home,
    LocalOnly,
    cancel_on_interrupt,
    emit_json,
    load_constraints,
)
from gametape.record.home import writable_home

if TYPE_CHECKING:
    from gametape.agent.solve import SolveRequest, SolveResult

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_EXIT_CODES = {"passed": 0, "cancelled": 130}


@app.command()
def solve(
    task: Annotated[Path, typer.Argument(help="A task directory.")],
    out: Annotated[Path, typer.Option(help="A directory for the attempt: trajectory, workspace, patch, checkpoints.")],
    model: ModelName = None,
    seed: Annotated[int | None, typer.Option(help="Makes sampling repeatable.")] = None,
    temperature: Temperature = None,
    top_p: Annotated[
        float, typer.Option(min=0.001, max=1.0, help="Sample from the likeliest tokens of this mass.")
    ] = 1.0,
    max_turns: MaxTurns = None,
    max_turn_tokens: MaxTurnTokens = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_seconds: MaxSeconds = None,
    max_tool_seconds: MaxToolSeconds = None,
    allow_host: AllowHost = None,
    constraints: ConstraintsFile = None,
    tools: Annotated[
        str | None,
        typer.Option(help="Offer only these tools, separated by commas; a small model does better with few."),
    ] = None,
    constrain: Annotated[
        bool, typer.Option(help="Constrain decoding to the format of a tool call, if the engine can.")
    ] = False,
    watch: Annotated[
        bool, typer.Option(help="Nudge an agent that loops, then give it a fresh context, then stop it.")
    ] = True,
    local_only: LocalOnly = False,
    resume: Annotated[bool, typer.Option(help="Continue the attempt in --out after its last finished turn.")] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Let MODEL attempt TASK in a sandbox, and let the verifier score the result.

    Every turn is on disk before the next begins. Ctrl-C ends the attempt in order: the trajectory is valid, the
    workspace is as the last finished turn left it, and --resume goes on from there; so it does after kill -9.

    Exits 0 if the verifier passed it, 1 if not, 2 for bad input, 3 if something is missing here. If the model never
    answers there is no verdict.

    \b
    Examples:
      gametape solve examples/tasks/slugs --model scripted:expert --out runs/first
      gametape solve examples/tasks/slugs --model smollm2 --out runs/small --max-turns 8 --seed 1
    """

    from gametape.agent.allowed_hosts import check_hosts
    from gametape.agent.attempt_directory import AttemptDirectory
    from gametape.agent.breaker import NullBreaker
    from gametape.agent.scripted_policies import SCRIPTED_POLICIES
    from gametape.agent.solve import SolveRequest
    from gametape.engines.egress_policy import EgressPolicy
    from gametape.engines.model_names import resolve_model
    from gametape.tasks.loader import load_task
    from gametape.watch.breaker import BehaviourBreaker
    from gametape.watch.monitor_set import MonitorSet

    root = writable_home(home)
    loaded_task = load_task(task, root, lambda text: typer.echo(text, err=True))
    scripts = {name: (lambda script=script: script(loaded_task)) for name, script in SCRIPTED_POLICIES.items()}
    request = SolveRequest(
        task=loaded_task,
        model=resolve_model(choose_model(model), root, EgressPolicy(local_only=local_only), scripts),
        directory=AttemptDirectory(out.absolute()),
        home=root,
        limits=limits_from_options(max_turns, max_turn_tokens, max_tokens, max_cost, max_seconds, max_tool_seconds),
        sampling=choose_sampling(temperature, top_p, seed),
        constraints=load_constraints(constraints),
        constrained_decoding=constrain,
        tools=frozenset(filter(None, tools.split(","))) if tools is not None else None,
        make_breaker=(lambda: BehaviourBreaker(MonitorSet())) if watch else NullBreaker,
        hosts=check_hosts(allow_host or ()),
    )
    solved = asyncio.run(_attempt(request, resume))
    emit_json(_answer(solved)) if as_json else _show(solved)
    raise typer.Exit(solved.exit_code if solved.outcome == "error" else _EXIT_CODES.get(solved.outcome, 1))


async def _attempt(request: "SolveRequest", resume: bool) -> "SolveResult":

    from gametape.agent.solve import solve as run_solve
    from gametape.core.errors import Interrupted
    from gametape.terminal.rollout_view import LiveView

    begun = request.directory.load_trajectory().turns if resume and request.directory.trajectory.exists() else 0
    try:
        return await cancel_on_interrupt(run_solve(request, resume, LiveView(request.limits.turns, begun).show))
    except asyncio.CancelledError:
        raise Interrupted("interrupted; --resume goes on with what was begun") from None
    finally:
        await request.model.close()


def _answer(solved: "SolveResult") -> dict[str, object]:
    return {
        "outcome": solved.outcome,
        "reason": solved.reason,
        "trajectory": str(solved.trajectory),
        "workspace": str(solved.workspace),
        "patch": str(solved.patch),
        "verdict": solved.verdict.model_dump(mode="json") if solved.verdict else None,
        "turns": solved.turns,
        "tokens": solved.tokens,
        "cost_usd": solved.cost_usd,
        "seconds": round(solved.seconds, 3),
        "models": solved.models,
        "escalations": solved.escalations,
        "cut_off": solved.cut_off,
        "warnings": list(solved.warnings),
        **({"network": solved.network} if solved.network else {}),
    }


def _show(solved: "SolveResult") -> None:
    from rich.console import Console
    from rich.markup import escape

    from gametape.cli.verify import show_verdict
    from gametape.watch.text_features import printable

    console = Console(highlight=False)
    colour = "green" if solved.outcome == "passed" else "red"
    cost = f", ${solved.cost_usd:.4f}" if solved.cost_usd else ""
    console.print(
        f"[{colour}]{solved.outcome}[/] ({escape(printable(solved.reason))}): {solved.turns} turns, "
        f"{solved.tokens} tokens{cost}, {solved.seconds:.1f} s",
        soft_wrap=True,
    )
    for line in route_lines(solved.models):
        console.print(f"[dim]{escape(line)}[/]", soft_wrap=True)
    for warning in solved.warnings:
        console.print(f"[yellow]{escape(warning)}[/]", soft_wrap=True)
    if solved.verdict:
        show_verdict(solved.verdict)
    for title, path in (("trajectory", solved.trajectory), ("workspace ", solved.workspace)):
        console.print(f"[dim]{title}[/] {escape(str(path))}", soft_wrap=True)
