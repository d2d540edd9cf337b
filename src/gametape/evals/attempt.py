"""`EvalAttempt`: one attempt at a task reduced to what the estimates need: its turns, its outcome, its cost."""

from collections.abc import Sequence

from pydantic import AliasChoices, Field

from gametape.agent.episode import Episode
from gametape.agent.recorded_steps import recorded_answers
from gametape.agent.replay import active_steps
from gametape.core.base_model import StrictModel
from gametape.core.environment import TurnMark
from gametape.core.step import Step
from gametape.core.trajectory import Outcome
from gametape.core.verdict import Verdict

_FAULTS = frozenset(
    {"malformed_call", "unknown_tool", "wrong_arguments", "too_many_calls", "no_call", "cut_off", "call_limit"}
)
_BREACH = "constraint"


class AttemptTurn(StrictModel):
    """One turn of an attempt. Files written before `correct` had this name say `right`."""

    failed: bool = False
    """The record shows a call that could not be parsed or run, or that failed."""
    tools: tuple[str, ...] = ()
    """The tools that were called, successfully or not."""
    done: tuple[str, ...] = ()
    """The calls that succeeded, each with its arguments."""
    breaches: int = 0
    """Attempts to break a standing constraint."""
    correct: bool | None = Field(default=None, validation_alias=AliasChoices("correct", "right"))
    """What the environment says of the turn; None where it says nothing."""
    load_bearing: bool = False
    key: str = ""

    @property
    def mistaken(self) -> bool:
        """The environment's word on the turn decides; where there is none, the record does."""
        return self.failed if self.correct is None else not self.correct


class EvalAttempt(StrictModel):
    """One attempt. `passed` is None where the infrastructure failed, so nothing is known about the policy. Files
    written before `bucket` had this name say `cell`."""

    task: str
    bucket: str = Field(default="", validation_alias=AliasChoices("bucket", "cell"))
    horizon: int = 1
    number: int = 0
    """The number of the attempt at its task, from 0."""
    outcome: Outcome
    reason: str = ""
    passed: bool | None
    reward: float | None = None
    hacked: bool = False
    turns: tuple[AttemptTurn, ...] = ()
    stages: tuple[bool, ...] = ()
    """Whether each stage of the task holds in the end; empty where it has no stages."""
    tokens: int = 0
    """Prompt and completion tokens, as a server would bill them."""
    written_tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    cut_off: int = 0
    """Turns that the limit of tokens cut off."""
    exit_code: int = 1
    """For an attempt that was broken off: 3 where something is missing here, else 1."""


def attempt_from_episode(episode: Episode, horizon: int, number: int) -> EvalAttempt:
    score, usage = episode.score, episode.usage
    passed = score.passed if score else None
    return EvalAttempt(
        task=episode.environment.name,
        bucket=episode.environment.bucket,
        horizon=horizon,
        number=number,
        outcome="passed" if passed else episode.end.outcome or "failed",
        reason=episode.end.reason,
        passed=passed,
        reward=score.reward if score else None,
        hacked=score.hacked if score else False,
        turns=_turns(episode.steps, score.marks if score else ()),
        stages=_stages(score.verdict if score else None),
        tokens=usage.tokens,
        written_tokens=usage.completion_tokens,
        cost_usd=usage.cost_usd,
        seconds=round(usage.seconds, 3),
        cut_off=usage.cut_off,
        exit_code=episode.end.exit_code,
    )


def _turns(steps: Sequence[Step], marks: Sequence[TurnMark]) -> tuple[AttemptTurn, ...]:
    by_turn = {mark.turn: mark for mark in marks}
    own = [step for step in active_steps(steps) if step.source == "agent" and not step.gametape_extra.summary]
    return tuple(_turn(step, by_turn.get(number)) for number, step in enumerate(own, start=1))


def _turn(step: Step, mark: TurnMark | None) -> AttemptTurn:
    answers, _ = recorded_answers(step)
    kinds = [event["kind"] for event in step.gametape_extra.events or []]
    turn = AttemptTurn(
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
        return turn
    return turn.model_copy(update={"correct": mark.correct, "load_bearing": mark.load_bearing, "key": mark.key})


def _stages(verdict: Verdict | None) -> tuple[bool, ...]:
    return tuple(stage.passed for stage in verdict.stages) if verdict else ()
