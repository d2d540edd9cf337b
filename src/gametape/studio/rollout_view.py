"""The tape of one rollout: its turns, the one that the coach stopped at, and what its hint did to every token."""

import json
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from gametape.core.errors import BadInput
from gametape.core.hint import Hint
from gametape.core.step import Step
from gametape.core.trajectory import Trajectory
from gametape.core.validation import problems_from
from gametape.studio.run_files import TARGET_COLUMNS, RunFiles

_MOST = 2000
"""Characters of one text that are shown."""


@dataclass(frozen=True)
class TokenView:
    """One token of the target span. Log-probabilities are of the token that was sampled."""

    text: str
    student: float
    teacher: float
    kl: float
    share: float
    """Of the largest divergence on the tape, for a bar."""
    weight: float
    student_top: list[tuple[str, float]]
    teacher_top: list[tuple[str, float]]


@dataclass(frozen=True)
class TurnView:
    number: int
    source: str
    said: str
    calls: list[str]
    results: list[str]
    target: bool


@dataclass(frozen=True)
class RolloutView:
    """`found` says how the coach came to this turn; `advantage` is what every sampled token got from the reward."""

    name: str
    task: str
    outcome: str
    update: int
    hint: str
    kind: str
    found: str
    advantage: float | None
    turns: list[TurnView]
    tokens: list[TokenView]


def most_changed_rollout(run: RunFiles) -> RolloutView | None:
    """Of the rollouts that were kept, the one with the target that the hint moved most; None where there is none."""
    kept: dict[str, Trajectory | None] = {}
    best: tuple[float, dict[str, Any], Trajectory] | None = None
    for target in run.targets:
        name = str(target["rollout"])
        if name not in kept:
            kept[name] = run.trajectory(name)
        trajectory, moved = kept[name], sum(target["kl"])
        if trajectory is not None and (best is None or moved > best[0]):
            best = (moved, target, trajectory)
    return _tape(best[1], best[2], run.vocabulary) if best else None


def _tape(target: dict[str, Any], trajectory: Trajectory, words: dict[int, str]) -> RolloutView:
    told = trajectory.extra or {}
    ours = told.get("gametape")
    ours = ours if isinstance(ours, dict) else {}
    hint = next((one for one in _hints(ours) if (one.step, one.text) == (target["step"], target["text"])), None)
    return RolloutView(
        name=str(target["rollout"]),
        task=str(told.get("task", "")),
        outcome=trajectory.outcome or "",
        update=int(target["update"]),
        hint=str(target["text"]),
        kind=str(target["kind"]),
        found=_found(hint) if hint else "",
        advantage=ours.get("advantage"),
        turns=[_turn(step, step.step_id == target["step"]) for step in trajectory.steps],
        tokens=_tokens(target, words),
    )


def _hints(ours: dict[str, Any]) -> list[Hint]:
    kept = ours.get("targets", [])
    try:
        return [Hint.model_validate(one) for one in (kept if isinstance(kept, list) else [kept])]
    except ValidationError as error:
        raise BadInput(f"a rollout's extra.gametape.targets: {problems_from(error, kept)[0]}") from error


def _found(hint: Hint) -> str:
    seen = f", seen at step {hint.noticed}" if hint.noticed else ""
    gates = [(name, getattr(hint.gates, name)) for name in ("g0", "g1", "g2")]
    held = "".join(f"; {name.upper()} {'passed' if gate.passed else 'failed'}" for name, gate in gates if gate)
    return f"{hint.source.replace('_', ' ')}{seen}{f': {hint.evidence}' if hint.evidence else ''}{held}"


def _turn(step: Step, target: bool) -> TurnView:
    calls = [f"{call.function_name} {json.dumps(call.arguments, ensure_ascii=False)}" for call in step.tool_calls or []]
    results = [_text(result.content) for result in (step.observation.results if step.observation else [])]
    return TurnView(step.step_id, step.source, _text(step.message), [*map(_cut, calls)], results, target)


def _text(content: Any) -> str:
    return _cut(content if isinstance(content, str) else "" if content is None else "(not text)")


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[:_MOST]} ... ({len(text) - _MOST} more characters)"


def _tokens(target: dict[str, Any], words: dict[int, str]) -> list[TokenView]:
    most = max(target["kl"], default=0.0) or 1.0

    def named(number: int) -> str:
        return _cut(words.get(number, f"#{number}"))

    return [
        TokenView(
            text=named(number),
            student=student,
            teacher=teacher,
            kl=kl,
            share=max(0.0, kl / most),
            weight=weight,
            student_top=[(named(at), prob) for at, prob in mine],
            teacher_top=[(named(at), prob) for at, prob in theirs],
        )
        for number, student, teacher, kl, weight, mine, theirs in zip(
            *(target[column] for column in TARGET_COLUMNS), strict=True
        )
    ]
