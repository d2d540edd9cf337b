"""What the coach has decided, kept on the trajectory; and stored targets read against later weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from gametape.coach.evidence import agent_turns
from gametape.coach.gates import MIN_LOGPROB_DROP, likelihood_gate
from gametape.coach.hinted_engine import hint_ids
from gametape.coach.span_scores import SpanQuery, SpanScores, score_span
from gametape.coach.statistics import HintStatistics
from gametape.core.errors import BadInput
from gametape.core.hint import Hint, HintGate, HintGates, HintVersions
from gametape.core.step import Step
from gametape.core.tokens import TurnTokens
from gametape.core.trajectory import Trajectory
from gametape.core.validation import problems_from
from gametape.engines.token_conversation import TokenModel

_OURS, _KEY = "gametape", "targets"
NO_CONTEXT_ROOM = "the model's window has no room for it"


@dataclass(frozen=True)
class StoredHint:
    """A decided target with the turn it is about: all that it takes to score it again."""

    hint: Hint
    turn: TurnTokens
    number: int
    """Of the turn, from 1."""


def with_stored_hints(trajectory: Trajectory, hints: Sequence[Hint]) -> Trajectory:
    """With these under `extra.gametape.targets`, in place of those of an earlier look."""
    extra = dict(trajectory.extra or {})
    ours = extra.get(_OURS)
    kept = [hint.model_dump(mode="json", exclude_none=True) for hint in hints]
    extra[_OURS] = {**(ours if isinstance(ours, dict) else {}), _KEY: kept}
    return trajectory.model_copy(update={"extra": extra})


def stored_hints_of(trajectory: Trajectory) -> list[Hint]:
    """Raises `BadInput` where what stands there are no targets: who reads the rest of a file leaves this part alone."""
    ours = (trajectory.extra or {}).get(_OURS)
    kept = ours.get(_KEY, []) if isinstance(ours, dict) else []
    if not isinstance(kept, list):
        raise BadInput(f"extra.{_OURS}.{_KEY}: expected a list of targets")
    return [_target(told, at) for at, told in enumerate(kept)]


def _target(data: object, at: int) -> Hint:
    try:
        return Hint.model_validate(data)
    except ValidationError as error:
        raise BadInput(f"extra.{_OURS}.{_KEY}[{at}]: {problems_from(error, data)[0]}") from error


def hints_with_turns(steps: Sequence[Step], hints: Sequence[Hint]) -> list[StoredHint]:
    """Those whose turn has its ids on record. Raises `BadInput` for a span that goes beyond its turn."""
    turns = {turn.step.step_id: turn for turn in agent_turns(steps)}
    found = ((hint, turns[hint.step]) for hint in hints if hint.step in turns)
    kept = [StoredHint(hint, tokens, turn.number) for hint, turn in found if (tokens := turn.step.tokens())]
    for one in kept:
        if one.hint.span[1] > len(one.turn.completion_ids):
            size = len(one.turn.completion_ids)
            raise BadInput(f"the target at step {one.hint.step} ends at {one.hint.span[1]}; the turn has {size} tokens")
    return kept


def fits_in_context(model: TokenModel, turn: TurnTokens, ids: Sequence[int], span: tuple[int, int]) -> bool:
    """Whether the model can read the turn up to the end of its span after a hint of these ids."""
    return len(turn.prompt_ids) + len(ids) + span[1] <= model.window


async def rescore_hints(
    kept: Sequence[StoredHint], model: TokenModel, statistics: HintStatistics, delta: float = MIN_LOGPROB_DROP
) -> list[StoredHint]:
    """The same targets as the model sees them now, without a new rollout. Their gaps go into the statistics; a hint is
    used if it was before and still changes the model's mind. One that this model has no room for is refused, unread.
    """
    found = []
    for one in kept:
        hint = one.hint
        if not fits_in_context(model, one.turn, hint_ids(model.chat_format, one.turn.prompt_ids, hint.text), hint.span):
            update = {"used": False, "refused": NO_CONTEXT_ROOM, "gates": HintGates(), **score_fields(None)}
            found.append(replace(one, hint=hint.model_copy(update=update)))
            continue
        question = SpanQuery(one.turn, one.number, hint.span, f"rescore/{hint.trajectory_id}/{hint.step}")
        now = await score_span(model, question, hint.text)
        gate = await likelihood_gate(model, question, hint.text, now, delta)
        known = statistics.for_type(hint.type)
        if now is not None:
            known.record_gap(now.gap)
        version = await model.engine.policy_version()
        update = {
            "gates": hint.gates.model_copy(update={"g0": gate}),
            "used": hint.used and gate.passed and not known.retired,
            "versions": HintVersions(policy=hint.versions.policy, teacher=version),
            **score_fields(now),
        }
        found.append(replace(one, hint=hint.model_copy(update=update)))
    return found


def score_fields(scores: SpanScores | None) -> dict[str, object]:
    """What a scoring leaves on a hint."""
    if scores is None:
        return {"student_logprobs": None, "teacher_logprobs": None, "kl": None}
    return {"student_logprobs": scores.student, "teacher_logprobs": scores.teacher, "kl": scores.kl}


def all_gates_passed(gates: HintGates) -> bool:
    """Every gate that was run."""
    run: list[HintGate | None] = [gates.g0, gates.g1, gates.g2]
    return all(gate.passed for gate in run if gate is not None)
