"""One attempt as the evaluations see it: how it went turn by turn, what came of it, what it took."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from gametape.agent.episode import Episode
from gametape.agent.recorder import recorded_answers, usage_from_steps
from gametape.agent.replay import active_steps
from gametape.core.base_model import StrictModel
from gametape.core.environment import TurnMark
from gametape.core.step import Step
from gametape.core.trajectory import Outcome, Trajectory
from gametape.core.verdict import Verdict
from gametape.engines.conversation import Call

_FAULTS = frozenset(
    {"malformed_call", "unknown_tool", "wrong_arguments", "too_many_calls", "no_call", "cut_off", "call_limit"}
)
_BREACH = "constraint"
_SETTLED = {"passed": True, "failed": False}
"""Outcomes that say by themselves whether it passed; where a limit ended it, only a verdict does."""


class AttemptTurn(StrictModel):
    """`right` is what whoever judges says of the turn, None where they say nothing."""

    failed: bool = False
    """Something in it went wrong, as far as the record shows: a call that could not be read or run, or that failed."""
    tools: tuple[str, ...] = ()
    """What was called, successfully or not."""
    done: tuple[str, ...] = ()
    """The calls that succeeded, each with its arguments."""
    breaches: int = 0
    """Standing constraints that it tried to break."""
    correct: bool | None = None
    load_bearing: bool = False
    key: str = ""

    @property
    def mistaken(self) -> bool:
        """What the judge says goes before what the record shows."""
        return self.failed if self.correct is None else not self.correct


class EvalAttempt(StrictModel):
    """`passed` is None where the machinery failed, so that nothing can be said about the policy."""

    task: str
    bucket: str = ""
    horizon: int = 1
    number: int = 0
    """Which of the attempts at its task it is, from 0."""
    outcome: Outcome
    reason: str = ""
    passed: bool | None
    reward: float | None = None
    hacked: bool = False
    turns: tuple[AttemptTurn, ...] = ()
    stages: tuple[bool, ...] = ()
    """Which stages of the task hold in the end, where it has stages."""
    tokens: int = 0
    """Read and written, as a server would bill them."""
    written_tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0


def attempt_from_episode(episode: Episode, horizon: int, number: int) -> EvalAttempt:
    judged, spent = episode.score, episode.usage
    passed = judged.passed if judged else None
    return EvalAttempt(
        task=episode.environment.name,
        bucket=episode.environment.bucket,
        horizon=horizon,
        number=number,
        outcome="passed" if passed else episode.end.outcome or "failed",
        reason=episode.end.reason,
        passed=passed,
        reward=judged.reward if judged else None,
        hacked=judged.hacked if judged else False,
        turns=_turns(episode.steps, judged.marks if judged else ()),
        stages=_stages(judged.verdict if judged else None),
        tokens=spent.tokens,
        written_tokens=spent.completion_tokens,
        cost_usd=spent.cost_usd,
        seconds=round(spent.seconds, 3),
    )


def attempt_from_trajectory(trajectory: Trajectory) -> EvalAttempt:
    """An attempt from its record, as `gametape solve` leaves it."""
    told: Mapping[str, Any] = trajectory.extra or {}
    verdict = Verdict.model_validate(told["verdict"]) if told.get("verdict") else None
    spent = usage_from_steps(trajectory.steps)
    stages = _stages(verdict)
    return EvalAttempt(
        task=str(told.get("task", "")),
        bucket=str(told.get("task", "")),
        horizon=len(stages) or 1,
        outcome=told.get("outcome", "error"),
        reason=str(told.get("reason", "")),
        passed=verdict.passed if verdict else _SETTLED.get(told.get("outcome", "")),
        reward=verdict.reward if verdict else None,
        hacked=verdict.proven if verdict else False,
        turns=_turns(trajectory.steps, ()),
        stages=stages,
        tokens=spent.tokens,
        written_tokens=spent.completion_tokens,
        cost_usd=spent.cost_usd,
        seconds=spent.earlier_seconds,
    )


def _turns(steps: Sequence[Step], marks: Sequence[TurnMark]) -> tuple[AttemptTurn, ...]:
    by_turn = {mark.turn: mark for mark in marks}
    own = [step for step in active_steps(steps) if step.source == "agent" and not step.gametape_extra.summary]
    return tuple(_turn(step, by_turn.get(number)) for number, step in enumerate(own, start=1))


def _turn(step: Step, mark: TurnMark | None) -> AttemptTurn:
    answers, _ = recorded_answers(step)
    kinds = [event["kind"] for event in step.gametape_extra.events or []]
    found = AttemptTurn(
        failed=any(answer.failed for answer in answers) or any(kind in _FAULTS for kind in kinds),
        tools=tuple(answer.call.name for answer in answers),
        done=tuple(
            f"{answer.call.name} {sorted(answer.call.arguments.items())}"[:200]
            for answer in answers
            if not answer.failed
        ),
        breaches=kinds.count(_BREACH),
    )
    if mark is None:
        return found
    return found.model_copy(update={"right": mark.correct, "load_bearing": mark.load_bearing, "key": mark.key})


def _named(call: Call) -> str:
    """Short, and the same for the same call."""
    arguments = json.dumps(call.arguments, sort_keys=True).encode()
    return f"{call.name} {hashlib.sha256(arguments).hexdigest()[:12]}"


def _stages(verdict: Verdict | None) -> tuple[bool, ...]:
    return tuple(stage.passed for stage in verdict.stages) if verdict else ()
