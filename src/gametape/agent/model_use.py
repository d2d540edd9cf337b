"""Which models took part in a recorded rollout, what each used, and where the work was handed to a stronger one."""

from collections.abc import Iterable, Sequence
from typing import Any

from gametape.agent.recorded_steps import usage_from_steps
from gametape.core.step import Step
from gametape.core.trajectory import Trajectory
from gametape.engines.conversation import Model
from gametape.engines.router import Router
from gametape.record.model_outcomes import ModelOutcome


def route_of(model: Model) -> dict[str, Any]:
    """What the record of an attempt says about a route: the first model, and why. Nothing for a single model."""
    if not isinstance(model, Router):
        return {}
    choice = model.choose()
    return {"route": {"first": choice.model.name, "why": choice.why}}


def models_used(record: Trajectory) -> dict[str, Any]:
    """The models in the order of their first turn, and the escalations. `why` is there where a route was chosen."""
    escalations = recorded_escalations(record.steps)
    route = ((record.agent.extra or {}).get("gametape") or {}).get("route") or {}
    models = []
    for name, steps in _turns_by_model(record.steps, record.agent.model_name).items():
        usage = usage_from_steps(steps)
        row = {"name": name, "turns": usage.turns, "tokens": usage.tokens, "cost_usd": usage.cost_usd}
        reason = _why(steps[0], route, escalations)
        models.append(row | ({"why": reason} if reason else {}))
    return {"models": models, "escalations": escalations}


def attempt_outcomes(key: str, steps: Iterable[Step], model_name: str | None, passed: bool) -> list[ModelOutcome]:
    """An attempt as a success or a failure of each model that took part: it is the last one's success, if it is one."""
    turns = _turns_by_model(steps, model_name)
    outcomes = []
    for name, taken in turns.items():
        usage, is_last = usage_from_steps(taken), name == list(turns)[-1]
        outcomes.append(
            ModelOutcome(key=key, model=name, passed=passed and is_last, cost_usd=usage.cost_usd, tokens=usage.tokens)
        )
    return outcomes


def _turns_by_model(steps: Iterable[Step], model_name: str | None) -> dict[str, list[Step]]:
    turns: dict[str, list[Step]] = {}
    for step in steps:
        if step.source == "agent":
            turns.setdefault(step.model_name or model_name or "unknown", []).append(step)
    return turns


def recorded_escalations(steps: Iterable[Step]) -> list[dict[str, Any]]:
    """Where the work was handed to a stronger model: the step that began its context, and the reason."""
    return [
        {"step": step.step_id, "reason": str(event.get("detail", ""))}
        for step in steps
        for event in step.gametape_extra.events or ()
        if event.get("kind") == "escalation"
    ]


def last_model(steps: Sequence[Step]) -> str | None:
    """The model that took the last turn."""
    return next((step.model_name for step in reversed(steps) if step.source == "agent"), None)


def _why(first: Step, route: dict[str, Any], escalations: list[dict[str, Any]]) -> str | None:
    before = [escalation for escalation in escalations if escalation["step"] < first.step_id]
    if before:
        return f"escalated: {before[-1]['reason']}"
    return str(route.get("why")) if route else None
