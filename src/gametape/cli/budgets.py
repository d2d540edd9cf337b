"""The budgets of an agent's work as options: the same names at every verb, the same defaults (`RolloutLimits`)."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gametape.agent.limits import RolloutLimits

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


def limits_from_options(
    turns: int | None = None,
    turn_tokens: int | None = None,
    tokens: int | None = None,
    cost: float | None = None,
    seconds: float | None = None,
    tool_seconds: float | None = None,
) -> "RolloutLimits":
    """The limits that were given; the defaults of `RolloutLimits` for the others."""
    from gametape.agent.limits import RolloutLimits

    given = {
        "turns": turns,
        "turn_tokens": turn_tokens,
        "tokens": tokens,
        "cost_usd": cost,
        "wall_seconds": seconds,
        "tool_seconds": tool_seconds,
    }
    return RolloutLimits.model_validate({name: value for name, value in given.items() if value is not None})
