"""`gametape eval`: measure a model on a suite."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gametape.cli.budgets import (
    MaxCost,
    MaxSeconds,
    MaxTokens,
    MaxToolSeconds,
    MaxTurns,
    MaxTurnTokens,
    limits_from_options,
)
from gametape.cli.model_option import ModelName, Temperature, choose_model, choose_sampling, usual_temperature
from gametape.cli.shared import AsJson, ConstraintsFile, Home, LocalOnly, emit, load_constraints
from gametape.record.errors import printable_path
from gametape.record.home import writable_home
from gametape.terminal.wait_line import WaitingLine, waiting

if TYPE_CHECKING:
    from gametape.agent.constraints import Constraints
    from gametape.agent.episode import Episode
    from gametape.agent.limits import RolloutLimits
    from gametape.engines.conversation import Model
    from gametape.engines.egress_policy import EgressPolicy
    from gametape.evals.attempt import EvalAttempt
    from gametape.evals.runner import AttemptStore, EvalSettings
    from gametape.record.loaded_task import LoadedTask
    from gametape.tasks.worlds.world import World

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_ANY_NUMBER = 1_000_000
"""Turns: a task has as many as were asked for, a world has its own."""
_LIMITS = (
    ("max_turns", "turns"),
    ("max_turn_tokens", "turn_tokens"),
    ("max_tokens", "tokens"),
    ("max_cost", "cost_usd"),
    ("max_seconds", "wall_seconds"),
)
"""The settings of a run that are limits, and the fields of `RolloutLimits` that hold them."""


@app.command(name="eval")
def evaluate(
    suite: Annotated[str, typer.Argument(help="A directory of tasks, a list file, a suite of worlds, or worlds:NAME.")],
    model: ModelName = None,
    k: Annotated[int, typer.Option("-k", min=1, help="The k of pass@k and pass^k.")] = 1,
    n: Annotated[int | None, typer.Option("-n", min=1, help="Attempts at each task (K).")] = None,
    seed: Annotated[int, typer.Option(help="The seed of all sampling, and of the worlds of worlds:NAME.")] = 0,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="A new directory for the results.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    trajectories: Annotated[bool, typer.Option("--trajectories", help="Also write every rollout to --out.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N tasks (100 for worlds:NAME).")] = None,
    temperature: Temperature = None,
    max_turns: MaxTurns = None,
    max_turn_tokens: MaxTurnTokens = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_seconds: MaxSeconds = None,
    max_tool_seconds: MaxToolSeconds = None,
    jobs: Annotated[int, typer.Option(min=1, max=4096, help="Attempts that run at the same time.")] = 16,
    constraints: ConstraintsFile = None,
    local_only: LocalOnly = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Let MODEL attempt every task of SUITE N times, and measure how often, how far and at what cost it succeeds.

    Attempts share one engine and are written as they end: after kill -9, --resume runs only what is missing. Katas
    are asked as questions, other tasks run in a sandbox, worlds in memory. What --resume is not told, such as a budget,
    is as the run was begun.

    Exits 0 when every attempt was made, 2 for bad input, 3 if something is missing here.

    \b
    Examples:
      gametape eval examples/tasks --model scripted:expert -n 2 -k 2
      gametape eval worlds:moderate --model runs/first -n 8 -k 8 --out evals/first
    """

    from gametape.core.errors import BadInput, Interrupted
    from gametape.engines.egress_policy import EgressPolicy
    from gametape.evals.attempt_log import AttemptLog
    from gametape.evals.runner import EvalSettings, NullAttemptStore
    from gametape.evals.suite import WORLDS_PREFIX, find_tasks, suite_digest

    model = choose_model(model)
    attempts = n or k
    if attempts < k:
        raise BadInput(f"pass@{k} needs at least {k} attempts, not {attempts}; give -n {k} or more")
    if out is None and (resume or trajectories):
        raise BadInput("--resume and --trajectories need --out")
    root = writable_home(home)
    rules = load_constraints(constraints)
    tasks = find_tasks(suite, root, limit, seed)
    limits = limits_from_options(max_turns, max_turn_tokens, max_tokens, max_cost, max_seconds, max_tool_seconds)
    if out is not None and resume:
        limits = _limits_as_begun(out, limits, (max_turns, max_turn_tokens, max_tokens, max_cost, max_seconds))
    sampling = choose_sampling(temperature)
    eval_settings = EvalSettings(
        attempts=attempts,
        jobs=jobs,
        seed=seed,
        sampling=sampling,
        limits=limits.model_copy(update={"turns": _ANY_NUMBER}),
    )
    settings: dict[str, Any] = {
        "suite": suite if suite.startswith(WORLDS_PREFIX) else str(Path(suite).absolute()),
        "suite_digest": suite_digest(tasks),
        "model": model,
        "seed": seed,
        "temperature": sampling.temperature if temperature is not None else usual_temperature(model),
        **{name: getattr(limits, field) for name, field in _LIMITS},
        "constraints": rules.model_dump(exclude_defaults=True),
    }
    rollouts = out / "trajectories" if out and trajectories else None
    run = _EvalRun(model, root, EgressPolicy(local_only=local_only), limits.turns, rules, rollouts)
    try:
        if out is None:
            answer = settings | asyncio.run(run.evaluate(tasks, eval_settings, NullAttemptStore(), k))
        else:
            with AttemptLog.open(out, settings, resume) as log:
                answer = settings | asyncio.run(run.evaluate(tasks, eval_settings, log, k))
                answer |= _write_report(out, answer)
    except KeyboardInterrupt:
        rest = f"--resume goes on with {printable_path(out)}" if out else "without --out nothing is kept"
        raise Interrupted(f"interrupted; {rest}") from None
    emit(answer, as_json, _show)


def _limits_as_begun(out: Path, limits: "RolloutLimits", given: Sequence[float | None]) -> "RolloutLimits":
    """The limits that the run in `out` was begun with, where none is given now."""
    from pydantic import ValidationError

    from gametape.agent.limits import RolloutLimits
    from gametape.core.errors import BadInput
    from gametape.evals.attempt_log import read_settings

    begun = read_settings(out)
    old = {
        field: begun[name]
        for (name, field), option in zip(_LIMITS, given, strict=True)
        if option is None and name in begun
    }
    try:
        return RolloutLimits.model_validate({**limits.model_dump(), **old})
    except ValidationError:
        raise BadInput(f"{out}: the settings of its run cannot be read") from None


class _EvalRun:
    """Opens a suite and a model, and evaluates one on the other."""

    def __init__(
        self, model: str, home: Path, perimeter: "EgressPolicy", turns: int, rules: "Constraints", out: Path | None
    ) -> None:
        """`out` is the directory for rollouts, or None."""
        self._model, self._home, self._perimeter = model, home, perimeter
        self._turns, self._forbidden, self._out = turns, rules, out

    async def evaluate(
        self, tasks: "list[World] | list[LoadedTask]", eval_settings: "EvalSettings", store: "AttemptStore", k: int
    ) -> dict[str, Any]:
        from gametape.evals.model_selector import ModelSelector
        from gametape.evals.report import build_report
        from gametape.evals.runner import NoAttemptEnded, evaluate
        from gametape.evals.suite import open_suite

        async with open_suite(tasks, self._home, self._turns, self._forbidden) as items:
            selector = ModelSelector.for_items(self._model, self._home, items, self._perimeter)
            try:
                with _Bar(len(items) * eval_settings.attempts) as bar:
                    attempts = await evaluate(items, selector, eval_settings, store, bar.show, self._record)
            finally:
                await selector.close()
        if all(attempt.passed is None for attempt in attempts):
            raise NoAttemptEnded(attempts)
        return build_report(attempts, eval_settings.attempts, k)

    def _record(self, episode: "Episode", model: "Model", number: int) -> None:
        from gametape.evals.episode_file import save_episode

        if self._out:
            save_episode(episode, model, number, self._out)


def _write_report(out: Path, answer: dict[str, Any]) -> dict[str, Any]:

    from gametape.record.atomic import write_atomically

    path = (out / "report.json").absolute()
    write_atomically(path, (json.dumps(answer, indent=1, allow_nan=False) + "\n").encode())
    return {"report": str(path)}


class _Bar:
    """Progress on stderr: attempts that ended, as a bar with the share that passed, else as a line now and then."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[more]}"))
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._lines = None if console.is_terminal else waiting("evaluating", console)
        self._line: WaitingLine | None = None
        self._task = self._progress.add_task("attempts", total=total, more="")
        self._total = total
        self._passed = self._judged = self._ended = 0

    def __enter__(self) -> "_Bar":
        self._progress.start()
        if self._lines is not None:
            self._line = self._lines.__enter__()
            self._line.show_stage("attempts", 0, self._total)
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
        if self._lines is not None:
            self._lines.__exit__(None, None, None)

    def show(self, attempt: "EvalAttempt") -> None:
        self._ended += 1
        if self._line is not None:
            self._line.show_stage("attempts", self._ended, self._total)
        self._judged += attempt.passed is not None
        self._passed += bool(attempt.passed)
        more = f"{self._passed / self._judged:.0%} passed" if self._judged else "none judged"
        self._progress.update(self._task, advance=1, more=more)


def _show(answer: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.text import Text

    from gametape.terminal.table import Column, print_table

    console = Console(highlight=False)
    success = answer["success"]
    broken = f", {answer['errors']} broken off" if answer["errors"] else ""
    console.print(
        Text(f"{answer['suite']}: {answer['tasks']} tasks, {answer['attempts']} attempts{broken}"), soft_wrap=True
    )
    rows = (
        *_interruptions(answer),
        ("success", _with_interval(success["rate"], success)),
        (f"pass@{answer['k']}", _percent(answer["pass_at_k"])),
        (f"pass^{answer['k']}", _percent(answer["pass_hat_k"])),
        *((f"horizon {row['horizon']}", f"{_percent(row['rate'])} of {row['n']}") for row in answer["by_horizon"]),
        *_far(answer["survival"]),
        ("first derailed step", str(answer["first_derailed_step"] or "-")),
        ("recovered after a mistake", _percent(answer["recovery_rate"])),
        ("tokens for a success", _number(answer["cost_per_success"]["tokens"])),
        ("seconds for a success", _number(answer["cost_per_success"]["seconds"])),
        ("spent on failures", _percent(answer["cost_per_success"]["spent_on_failures"])),
    )
    print_table([Column(style="dim"), Column(wraps=True)], rows, console)
    if "report" in answer:
        console.print(Text(f"report {answer['report']}", style="dim"), soft_wrap=True)


def _interruptions(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """What stands between the figures and the model: attempts that broke off, and turns that were cut off."""
    from gametape.watch.text_features import printable

    rows = [("broken off", f"{number}: {printable(reason)}") for reason, number in answer["error_reasons"].items()]
    if answer["cut_off"]:
        rows.append(
            ("cut off", f"{answer['cut_off']} of {answer['attempts']} attempts, in a turn that reached its token limit")
        )
    return rows


def _far(survival: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """A few points of the survival curve."""
    last = survival[-1:]
    picked = [point for point in survival if point["step"] in (1, 2, 4, 8, 16, 32, 48, 64) or point in last]
    return [(f"on track after {point['step']}", _with_interval(point["s"], point)) for point in picked]


def _with_interval(share: float | None, text: dict[str, Any]) -> str:
    return f"{_percent(share)}  ({_percent(text['low'])} to {_percent(text['high'])})"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
