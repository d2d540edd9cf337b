"""What the coach has decided, kept on the trajectory; and stored targets read against later weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from gametape.coach.gates import DELTA, g0
from gametape.coach.hinted_engine import hint_ids
from gametape.coach.scoring import Question, Scored, scored
from gametape.coach.statistics import Statistics
from gametape.coach.turns import turns_of
from gametape.core.errors import BadInput
from gametape.core.hint import Gate, Gates, Hint, HintVersions
from gametape.core.problems import problems_in
from gametape.core.step import Step
from gametape.core.tokens import TurnTokens
from gametape.core.trajectory import Trajectory
from gametape.engines.token_conversation import TokenModel

_OURS, _KEY = "gametape", "targets"
NO_ROOM = "the model's window has no room for it"


@dataclass(frozen=True)
class Stored:
    """A decided target with the turn it is about: all that it takes to score it again."""

    hint: Hint
    turn: TurnTokens
    number: int
    """Of the turn, from 1."""


def with_targets(trajectory: Trajectory, hints: Sequence[Hint]) -> Trajectory:
    """With these under `extra.gametape.targets`, in place of those of an earlier look."""
    extra = dict(trajectory.extra or {})
    ours = extra.get(_OURS)
    kept = [hint.model_dump(mode="json", exclude_none=True) for hint in hints]
    extra[_OURS] = {**(ours if isinstance(ours, dict) else {}), _KEY: kept}
    return trajectory.model_copy(update={"extra": extra})


def targets_of(trajectory: Trajectory) -> list[Hint]:
    """Raises `BadInput` where what stands there are no targets: who reads the rest of a file leaves this part alone."""
    ours = (trajectory.extra or {}).get(_OURS)
    kept = ours.get(_KEY, []) if isinstance(ours, dict) else []
    if not isinstance(kept, list):
        raise BadInput(f"extra.{_OURS}.{_KEY}: expected a list of targets")
    return [_target(told, at) for at, told in enumerate(kept)]


def _target(told: object, at: int) -> Hint:
    try:
        return Hint.model_validate(told)
    except ValidationError as error:
        raise BadInput(f"extra.{_OURS}.{_KEY}[{at}]: {problems_in(error, told)[0]}") from error


def stored(steps: Sequence[Step], hints: Sequence[Hint]) -> list[Stored]:
    """Those whose turn has its ids on record. Raises `BadInput` for a span that goes beyond its turn."""
    turns = {turn.step.step_id: turn for turn in turns_of(steps)}
    found = ((hint, turns[hint.step]) for hint in hints if hint.step in turns)
    kept = [Stored(hint, tokens, turn.number) for hint, turn in found if (tokens := turn.step.tokens())]
    for one in kept:
        if one.hint.span[1] > len(one.turn.completion_ids):
            size = len(one.turn.completion_ids)
            raise BadInput(f"the target at step {one.hint.step} ends at {one.hint.span[1]}; the turn has {size} tokens")
    return kept


def fits(model: TokenModel, turn: TurnTokens, ids: Sequence[int], span: tuple[int, int]) -> bool:
    """Whether the model can read the turn up to the end of its span after a hint of these ids."""
    return len(turn.prompt_ids) + len(ids) + span[1] <= model.window


async def rescore(
    kept: Sequence[Stored], model: TokenModel, statistics: Statistics, delta: float = DELTA
) -> list[Stored]:
    """The same targets as the model sees them now, without a new rollout. Their gaps go into the statistics; a hint is
    used if it was before and still changes the model's mind. One that this model has no room for is refused, unread.
    """
    found = []
    for one in kept:
        hint = one.hint
        if not fits(model, one.turn, hint_ids(model.dialect, one.turn.prompt_ids, hint.text), hint.span):
            update = {"used": False, "refused": NO_ROOM, "gates": Gates(), **columns(None)}
            found.append(replace(one, hint=hint.model_copy(update=update)))
            continue
        question = Question(one.turn, one.number, hint.span, f"rescore/{hint.trajectory_id}/{hint.step}")
        now = await scored(model, question, hint.text)
        gate = await g0(model, question, hint.text, now, delta)
        known = statistics.of(hint.type)
        if now is not None:
            known.measured(now.gap)
        version = await model.engine.policy_version()
        update = {
            "gates": hint.gates.model_copy(update={"g0": gate}),
            "used": hint.used and gate.passed and not known.retired,
            "versions": HintVersions(policy=hint.versions.policy, teacher=version),
            **columns(now),
        }
        found.append(replace(one, hint=hint.model_copy(update=update)))
    return found


def columns(found: Scored | None) -> dict[str, object]:
    """What a scoring leaves on a hint."""
    if found is None:
        return {"student_logprobs": None, "teacher_logprobs": None, "kl": None}
    return {"student_logprobs": found.student, "teacher_logprobs": found.teacher, "kl": found.kl}


def passed(gates: Gates) -> bool:
    """Every gate that was run."""
    run: list[Gate | None] = [gates.g0, gates.g1, gates.g2]
    return all(gate.passed for gate in run if gate is not None)
