"""One rollout for the report: its turns, the turn that the coach hinted at, and the hint's effect on every token."""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from gametape.core.errors import BadInput
from gametape.core.hint import Hint
from gametape.core.tokens import TOKEN_COLUMNS
from gametape.core.trajectory import Trajectory
from gametape.core.validation import problems_from
from gametape.studio.run_files import TARGET_COLUMNS, RunFiles
from gametape.studio.step_view import StepView, view_step

_MOST = 2000
"""The most characters of one token in the report."""
_MOST_STEPS = 200


@dataclass(frozen=True)
class TokenView:
    """One token of the target span. Log-probabilities are those of the sampled token."""

    text: str
    student: float
    teacher: float
    kl: float
    share: float
    """The divergence relative to the largest one, for a bar."""
    weight: float
    student_top: list[tuple[str, float]]
    teacher_top: list[tuple[str, float]]


@dataclass(frozen=True)
class RolloutView:
    """`evidence` says how the coach found this turn; `advantage` is what the reward gave every sampled token."""

    name: str
    task: str
    outcome: str
    update: int
    hint: str
    kind: str
    evidence: str
    advantage: float | None
    target: int
    """The number of the step that was hinted."""
    steps: list[StepView]
    tokens: list[TokenView]


def most_changed_rollout(run: RunFiles) -> RolloutView | None:
    """The saved rollout whose target span the hint changed most; None where there is none."""
    trajectories: dict[str, Trajectory | None] = {}
    best: tuple[float, dict[str, Any], Trajectory] | None = None
    for target in run.targets:
        name = str(target["rollout"])
        if name not in trajectories:
            trajectories[name] = run.trajectory(name)
        trajectory, divergence = trajectories[name], sum(target["kl"])
        if trajectory is not None and (best is None or divergence > best[0]):
            best = (divergence, target, trajectory)
    return _rollout_view(best[1], best[2], run.vocabulary) if best else None


def _rollout_view(target: dict[str, Any], trajectory: Trajectory, vocabulary: dict[int, str]) -> RolloutView:
    extra = trajectory.extra or {}
    ours = extra.get("gametape")
    ours = ours if isinstance(ours, dict) else {}
    hint = next((hint for hint in _hints(ours) if (hint.step, hint.text) == (target["step"], target["text"])), None)
    return RolloutView(
        name=str(target["rollout"]),
        task=str(extra.get("task", "")),
        outcome=trajectory.outcome or "",
        update=int(target["update"]),
        hint=str(target["text"]),
        kind=str(target["kind"]),
        evidence=_evidence(hint) if hint else "",
        advantage=ours.get("advantage"),
        target=int(target["step"]),
        steps=_steps(trajectory),
        tokens=_tokens(target, vocabulary),
    )


def _hints(ours: dict[str, Any]) -> list[Hint]:
    hints = ours.get("targets", [])
    try:
        return [Hint.model_validate(hint) for hint in (hints if isinstance(hints, list) else [hints])]
    except ValidationError as error:
        raise BadInput(f"a rollout's extra.gametape.targets: {problems_from(error, hints)[0]}") from error


def _evidence(hint: Hint) -> str:
    seen = f", seen at step {hint.noticed}" if hint.noticed else ""
    gates = [(name, getattr(hint.gates, name)) for name in ("g0", "g1", "g2")]
    held = "".join(f"; {name.upper()} {'passed' if gate.passed else 'failed'}" for name, gate in gates if gate)
    return f"{hint.source.replace('_', ' ')}{seen}{f': {hint.evidence}' if hint.evidence else ''}{held}"


def _steps(trajectory: Trajectory) -> list[StepView]:
    steps, turn = [], 1
    for step in trajectory.steps[:_MOST_STEPS]:
        steps.append(view_step(step.model_dump(exclude={"metrics": TOKEN_COLUMNS}), step.step_id, turn))
        turn += step.source == "agent"
    return steps


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[:_MOST]} ... ({len(text) - _MOST} more characters)"


def _tokens(target: dict[str, Any], vocabulary: dict[int, str]) -> list[TokenView]:
    largest = max(target["kl"], default=0.0) or 1.0

    def text_of(number: int) -> str:
        return _cut(vocabulary.get(number, f"#{number}"))

    return [
        TokenView(
            text=text_of(number),
            student=student,
            teacher=teacher,
            kl=kl,
            share=max(0.0, kl / largest),
            weight=weight,
            student_top=[(text_of(at), prob) for at, prob in student_top],
            teacher_top=[(text_of(at), prob) for at, prob in teacher_top],
        )
        for number, student, teacher, kl, weight, student_top, teacher_top in zip(
            *(target[column] for column in TARGET_COLUMNS), strict=True
        )
    ]
