"""The router by name: `LOCAL,FRONTIER` stands for two models, with the odds that earlier attempts have measured."""

from collections.abc import Callable
from pathlib import Path

from gametape.core.errors import BadInput
from gametape.engines.conversation import Model
from gametape.engines.egress_policy import EgressDenied, EgressPolicy
from gametape.engines.router import Router, RouterArm
from gametape.record.model_outcomes import measure_odds


def split_route(name: str) -> list[str]:
    """The names in a name: two for a route, else one. A comma in the path of a script or of weights is no route."""
    if "," not in name or Path(name.removeprefix("scripted:")).exists():
        return [name]
    parts = [part.strip() for part in name.split(",")]
    if len(parts) != 2 or not all(parts):
        raise BadInput(f"{name}: a route is two models, LOCAL,FRONTIER")
    if parts[0] == parts[1]:
        raise BadInput(f"{name}: names the same model twice; a route is two models, LOCAL,FRONTIER")
    return parts


def open_route(parts: list[str], home: Path, egress: EgressPolicy, open_model: Callable[[str], Model]) -> Router:
    """The router over two models. A frontier model that may not be used here is left out."""
    local = open_model(parts[0])
    frontier = _open_frontier(parts[1], egress, open_model)
    if frontier is not None and frontier.name == local.name:
        raise BadInput(f"{','.join(parts)}: both are {local.name}; a route is two models, LOCAL,FRONTIER")
    arms = [RouterArm(model, measure_odds(home, model.name).mean_cost_usd) for model in (local, frontier) if model]
    odds = measure_odds(home, local.name)
    return Router(arms[0], arms[1] if frontier else None, egress, lambda: odds.p_success)


def _open_frontier(name: str, egress: EgressPolicy, open_model: Callable[[str], Model]) -> Model | None:
    try:
        return open_model(name)
    except EgressDenied:
        if egress.local_only:
            return None
        raise
