"""The default of `--model` and of the budgets: option, else environment, else workspace, else the user's file.

Every verb that takes a model or a budget asks here.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gametape.core.errors import BadInput
from gametape.record.installation import command_line

if TYPE_CHECKING:
    from gametape.core.messages import Sampling
    from gametape.core.user_config import BudgetConfig

VARIABLE = "GAMETAPE_MODEL"
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="M",
        help="smollm2, a directory of weights, PROVIDER:MODEL, MODEL@URL, scripted:FILE, an alias of your "
        "configuration, or LOCAL,FRONTIER (default: $GAMETAPE_MODEL, or as configured; `gametape models` says which).",
    ),
]

Temperature = Annotated[
    float | None,
    typer.Option(min=0.0, max=100.0, help="0 is greedy (default: 1, or that of the model's alias)."),
]


@dataclass(frozen=True)
class ChosenModel:
    """A model's name, and where it was named."""

    name: str
    origin: str


def choose_model(given: str | None, workspace: Path | None = None) -> str:
    """The model to use; without a workspace, the current directory's configuration counts."""
    chosen = find_model(given, workspace)
    if chosen is None:
        raise BadInput(f"no model: give --model, or type `{command_line('init')}`")
    return chosen.name


def find_model(given: str | None, workspace: Path | None = None) -> ChosenModel | None:
    """The model to use and its origin; None where none is named anywhere."""
    from gametape.record.config_file import read_user_config, user_config_file

    if given is not None:
        if not given.strip():
            raise BadInput(f"--model is empty; give a model, or type `{command_line('init')}`")
        return ChosenModel(given, "--model")
    if named := os.environ.get(VARIABLE, "").strip():
        return ChosenModel(named, f"${VARIABLE}")
    config = read_user_config()
    from_workspace = _workspace_model(workspace)
    if from_workspace is not None:
        return from_workspace
    return ChosenModel(config.model, str(user_config_file())) if config.model else None


def usual_temperature(name: str) -> float:
    """The temperature of a model that is given none."""
    from gametape.core.messages import Sampling
    from gametape.record.config_file import read_user_config

    alias = read_user_config().models.get(name)
    return alias.temperature if alias and alias.temperature is not None else Sampling().temperature


def choose_sampling(temperature: float | None, top_p: float = 1.0, seed: int | None = None) -> "Sampling":
    """Sampling as the options say. Where no temperature is given, an alias may have one of its own."""
    from gametape.core.messages import Sampling

    rest = Sampling(top_p=top_p, seed=seed)
    return rest if temperature is None else Sampling(temperature=temperature, top_p=top_p, seed=seed)


def choose_budgets(given: "BudgetConfig", workspace: Path | None = None, *, timed: bool = True) -> "BudgetConfig":
    """Each budget as the option says, else as the user's file says, else the usual one. A workspace only lowers what
    the last two say. Without `timed`, there is no usual end by the clock."""
    from gametape.agent.limits import RolloutLimits
    from gametape.core.user_config import BudgetConfig
    from gametape.record.config_file import read_user_config

    limits = RolloutLimits()
    seconds = limits.wall_seconds if timed else None
    usual = BudgetConfig(turns=limits.turns, turn_tokens=limits.turn_tokens, seconds=seconds)
    own, lower = read_user_config().budgets, _workspace_budgets(workspace)
    chosen: dict[str, Any] = {}
    for name in BudgetConfig.model_fields:
        options = [getattr(budgets, name) for budgets in (given, own, usual)]
        value = next((option for option in options if option is not None), None)
        limit = getattr(lower, name)
        if options[0] is None and limit is not None:
            value = limit if value is None else min(value, limit)
        chosen[name] = value
    return BudgetConfig.model_construct(**chosen)


def route_lines(models: list[dict[str, Any]]) -> list[str]:
    """A line for each model of a route that took part: what it did, and why it was this one."""
    from gametape.cli.shared import count_of, printable_line

    return [
        printable_line(f"{model['name']}: {count_of(model['turns'], 'turn')} ({model['why']})")
        for model in models
        if model.get("why")
    ]


def _workspace_model(workspace: Path | None) -> ChosenModel | None:
    from gametape.engines.model_aliases import check_workspace_model
    from gametape.record.config_file import WORKSPACE_FILE, read_user_config, read_workspace_config

    root = _workspace_root(workspace)
    name = read_workspace_config(root).model if root else None
    if root is None or name is None:
        return None
    where = str(root / WORKSPACE_FILE)
    return ChosenModel(check_workspace_model(name, read_user_config(), where, root), where)


def _workspace_budgets(workspace: Path | None) -> "BudgetConfig":
    from gametape.core.user_config import BudgetConfig
    from gametape.record.config_file import read_workspace_config

    root = _workspace_root(workspace)
    return read_workspace_config(root).budgets if root else BudgetConfig()


def _workspace_root(workspace: Path | None) -> Path | None:
    """The workspace, else the current directory, if it still exists."""
    try:
        return workspace.absolute() if workspace is not None else Path.cwd()
    except OSError:
        return None
