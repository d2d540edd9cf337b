"""Hints stored in a trajectory file, and stored hints scored again with later weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from gametape.coach.evidence import agent_turns
from gametape.coach.fork_pair import ForkPair
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
    """A hint with its turn: everything that is needed to score it again."""

    hint: Hint
    turn: TurnTokens
    number: int
    """The turn's number, from 1."""


def with_stored_hints(trajectory: Trajectory, hints: Sequence[Hint], forks: Sequence[ForkPair] = ()) -> Trajectory:
    """The trajectory with these hints under `extra.gametape.targets`, in place of earlier ones. What forks of it did is
    under `extra.gametape.forks`."""
    extra = dict(trajectory.extra or {})
    ours = extra.get(_OURS)
    stored = [hint.model_dump(mode="json", exclude_none=True) for hint in hints]
    extra[_OURS] = {**(ours if isinstance(ours, dict) else {}), _KEY: stored}
    if forks:
        extra[_OURS]["forks"] = [pair.to_dict() for pair in forks]
    return trajectory.model_copy(update={"extra": extra})


def stored_hints_of(trajectory: Trajectory) -> list[Hint]:
    """Raises `BadInput` where the stored values are no hints: other readers of trajectories do not check this part."""
    ours = (trajectory.extra or {}).get(_OURS)
    stored = ours.get(_KEY, []) if isinstance(ours, dict) else []
    if not isinstance(stored, list):
        raise BadInput(f"extra.{_OURS}.{_KEY}: expected a list of targets")
    return [_parse_hint(data, index) for index, data in enumerate(stored)]


def _parse_hint(data: object, index: int) -> Hint:
    try:
        return Hint.model_validate(data)
    except ValidationError as error:
        raise BadInput(f"extra.{_OURS}.{_KEY}[{index}]: {problems_from(error, data)[0]}") from error


def hints_with_turns(steps: Sequence[Step], hints: Sequence[Hint]) -> list[StoredHint]:
    """The hints whose turn has recorded ids. Raises `BadInput` for a span that goes beyond its turn."""
    turns = {turn.step.step_id: turn for turn in agent_turns(steps)}
    pairs = ((hint, turns[hint.step]) for hint in hints if hint.step in turns)
    stored = [StoredHint(hint, tokens, turn.number) for hint, turn in pairs if (tokens := turn.step.tokens())]
    for target in stored:
        if target.hint.span[1] > len(target.turn.completion_ids):
            size = len(target.turn.completion_ids)
            raise BadInput(
                f"the target at step {target.hint.step} ends at {target.hint.span[1]}; the turn has {size} tokens"
            )
    return stored


def fits_in_context(model: TokenModel, turn: TurnTokens, ids: Sequence[int], span: tuple[int, int]) -> bool:
    """Whether the model can read the turn up to the end of its span after a hint of these ids."""
    return len(turn.prompt_ids) + len(ids) + span[1] <= model.window_ids


async def rescore_hints(
    stored: Sequence[StoredHint], model: TokenModel, statistics: HintStatistics, delta: float = MIN_LOGPROB_DROP
) -> list[StoredHint]:
    """The same hints scored with the model's present weights, without a new rollout. Their gaps go into the statistics;
    a hint is used if it was before and still passes the likelihood gate. One that does not fit into the model's context
    is refused, unscored."""
    rescored = []
    for target in stored:
        hint = target.hint
        if not fits_in_context(
            model, target.turn, hint_ids(model.chat_format, target.turn.prompt_ids, hint.text), hint.span
        ):
            update = {"used": False, "refused": NO_CONTEXT_ROOM, "gates": HintGates(), **score_fields(None)}
            rescored.append(replace(target, hint=hint.model_copy(update=update)))
            continue
        query = SpanQuery(target.turn, target.number, hint.span, f"rescore/{hint.trajectory_id}/{hint.step}")
        scores = await score_span(model, query, hint.text)
        gate = await likelihood_gate(model, query, hint.text, scores, delta)
        type_statistics = statistics.for_type(hint.type)
        if scores is not None:
            type_statistics.record_gap(scores.gap)
        version = await model.engine.policy_version()
        update = {
            "gates": hint.gates.model_copy(update={"g0": gate}),
            "used": hint.used and gate.passed and not type_statistics.retired,
            "versions": HintVersions(policy=hint.versions.policy, teacher=version),
            **score_fields(scores),
        }
        rescored.append(replace(target, hint=hint.model_copy(update=update)))
    return rescored


def score_fields(scores: SpanScores | None) -> dict[str, object]:
    """The fields of a hint that hold its scores."""
    if scores is None:
        return {"student_logprobs": None, "teacher_logprobs": None, "kl": None}
    return {"student_logprobs": scores.student, "teacher_logprobs": scores.teacher, "kl": scores.kl}


def all_gates_passed(gates: HintGates) -> bool:
    """Whether every gate that was run has passed."""
    run: list[HintGate | None] = [gates.g0, gates.g1, gates.g2]
    return all(gate.passed for gate in run if gate is not None)
