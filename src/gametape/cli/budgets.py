"""The budgets of an agent's work as options: the same names at every verb, the same defaults (`RolloutLimits`)."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gametape.agent.limits import RolloutLimits
    from gametape.core.user_config import BudgetConfig

MaxTurns = Annotated[
    int | None, typer.Option("--max-turns", min=1, metavar="N", help="Turns of the model: of an attempt, or an answer.")
]
MaxTurnTokens = Annotated[
    int | None,
    typer.Option(
        "--max-turn-tokens", min=1, metavar="N", help="New tokens in one turn; never more than a quarter of the window."
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens", "--budget-tokens", min=1, metavar="N", help="Tokens in all, read and written."),
]
MaxCost = Annotated[
    float | None,
    typer.Option("--max-cost", "--budget-usd", min=0.000001, max=1e9, metavar="DOLLARS", help="Dollars in all."),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option("--max-seconds", "--deadline", min=0.1, max=1e9, metavar="S", help="Seconds by the clock, from now."),
]
MaxToolSeconds = Annotated[
    float | None,
    typer.Option("--max-tool-seconds", min=0.1, max=1e6, metavar="S", help="Seconds that one tool call may take."),
]


def budgets_from_options(
    turns: int | None = None,
    turn_tokens: int | None = None,
    tokens: int | None = None,
    cost: float | None = None,
    seconds: float | None = None,
    *,
    workspace: Path | None = None,
    timed: bool = True,
) -> "BudgetConfig":
    """The budgets that were given, and the configured or usual ones for the others (`choose_budgets`)."""
    from gametape.cli.model_option import choose_budgets
    from gametape.core.user_config import BudgetConfig

    given = BudgetConfig.model_construct(
        turns=turns, turn_tokens=turn_tokens, tokens=tokens, cost=cost, seconds=seconds
    )
    return choose_budgets(given, workspace, timed=timed)


AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="HOST",
        help="A host the agent may reach through the logging proxy: name, *.name or address, with :port if it is not "
        "80 or 443. Repeatable. Default: none.",
    ),
]


def limits_from_options(
    turns: int | None = None,
    turn_tokens: int | None = None,
    tokens: int | None = None,
    cost: float | None = None,
    seconds: float | None = None,
    tool_seconds: float | None = None,
) -> "RolloutLimits":
    """The limits that were given; for the others the configured ones, else the defaults of `RolloutLimits`."""
    from gametape.agent.limits import RolloutLimits

    budgets = budgets_from_options(turns, turn_tokens, tokens, cost, seconds)
    given = {
        "turns": budgets.turns,
        "turn_tokens": budgets.turn_tokens,
        "tokens": budgets.tokens,
        "cost_usd": budgets.cost,
        "wall_seconds": budgets.seconds,
        "tool_seconds": tool_seconds,
    }
    return RolloutLimits.model_validate({name: value for name, value in given.items() if value is not None})
