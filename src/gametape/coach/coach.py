"""The coach: looks at a finished rollout and says where it went wrong, what to say there, and whether that helps."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from gametape.agent.episode import Episode
from gametape.agent.limits import RolloutLimits
from gametape.coach.bisection import decisive_turn
from gametape.coach.evidence import AlarmEvidence, EpisodeEvidence, HintCandidate, collect_evidence
from gametape.coach.forks import EpisodeForker, ForkCost, replay_for_forks
from gametape.coach.gates import (
    CONFIDENCE,
    MIN_FORKS,
    MIN_LOGPROB_DROP,
    ForkTrial,
    likelihood_gate,
    outcome_gate,
    run_fork_trial,
    wellformed_gate,
)
from gametape.coach.hint_store import NO_CONTEXT_ROOM, all_gates_passed, fits_in_context, score_fields
from gametape.coach.hinted_engine import hint_ids
from gametape.coach.hints import NO_LEAK_CHECK, LeakChecker
from gametape.coach.localization import locate_candidates, with_action_span
from gametape.coach.span_scores import SpanQuery, SpanScores, score_span
from gametape.coach.statistics import HintStatistics
from gametape.core.errors import BadInput
from gametape.core.hint import Hint, HintGates, HintVersions
from gametape.core.tokens import TurnTokens
from gametape.core.verdict import Flag
from gametape.engines.token_conversation import TokenModel

GateName = Literal["g0", "g1", "g2"]
CandidateSource = Callable[[EpisodeEvidence], Sequence[HintCandidate]]


@dataclass(frozen=True)
class CoachSettings:
    """How closely the coach looks. The first gate alone needs two readings of a turn; `g2` and `bisect` play on."""

    gates: frozenset[GateName] = frozenset({"g0"})
    delta: float = MIN_LOGPROB_DROP
    forks: int = MIN_FORKS
    confidence: float = CONFIDENCE
    versions: int = 100
    """For how many updates of the weights forks are worth anything."""
    bisect: bool = False
    """Look for the decisive turn of failed rollouts in which nothing shows it."""
    bisection_forks: int = 8
    """At each turn that is looked at."""
    temperature: float = 1.0
    """Of the policy, in forks."""
    limits: RolloutLimits = field(default_factory=RolloutLimits)


class Coach:
    """`statistics` outlives a look: forks are pooled by type, and types retire. `cost` is all that looking took, in
    tokens read or sampled, and in forks."""

    def __init__(self, looking: CoachSettings | None = None, statistics: HintStatistics | None = None) -> None:
        self.settings = looking or CoachSettings()
        self.statistics = statistics or HintStatistics()
        self.cost = ForkCost()
        self._forking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By type: looks at the same time share their forks."""

    async def annotate(
        self,
        episode: Episode,
        model: TokenModel,
        trajectory_id: str,
        reference: LeakChecker = NO_LEAK_CHECK,
        given: Sequence[HintCandidate] = (),
        sources: Sequence[CandidateSource] = (),
        flags: Sequence[Flag] = (),
        alarms: Sequence[AlarmEvidence] = (),
    ) -> list[Hint]:
        """Every target of a rollout with what was decided about it, in the order of turns. `name` is the trajectory's.

        A `given` target goes before whatever is found at its turn, and what `sources` (a judge) find comes last.
        Targets whose turn has no ids on record are left out.
        """
        case = collect_evidence(episode, flags, alarms)
        found = {target.turn: target for source in sources for target in source(case)}
        found |= {target.turn: target for target in [*locate_candidates(case), *given]}
        if not found and self.settings.bisect and episode.score and not episode.score.passed:
            found = await self._bisect(episode, model, trajectory_id, case)
        every = [with_action_span(found[turn], case, model.chat_format) for turn in sorted(found)]
        targets = [target for target in every if target.span]
        hints = await asyncio.gather(
            *(self._apply_cheap_gates(target, case, model, trajectory_id, reference) for target in targets)
        )
        if "g2" in self.settings.gates and any(hint.used for hint in hints):
            async with self._forker(episode, model, trajectory_id) as ground:
                hints = [
                    await self._apply_outcome_gate(ground, target, targets, hint) if hint.used else hint
                    for target, hint in zip(targets, hints, strict=True)
                ]
        for hint in hints:
            self.statistics.record(hint.type, hint.gates, hint.used)
        return list(hints)

    async def _bisect(
        self, episode: Episode, model: TokenModel, name: str, case: EpisodeEvidence
    ) -> dict[int, HintCandidate]:
        async with self._forker(episode, model, name) as ground:
            target = await decisive_turn(ground, case.tools, self.settings.bisection_forks)
        return {target.turn: target} if target else {}

    async def _apply_cheap_gates(
        self, target: HintCandidate, case: EpisodeEvidence, model: TokenModel, name: str, reference: LeakChecker
    ) -> Hint:
        """After the cheap gates; used for now if it has passed those that were asked for."""
        turn = _tokens(case, target)
        span = target.span or (0, len(turn.completion_ids))
        ids = hint_ids(model.chat_format, turn.prompt_ids, target.text)
        hint = Hint(
            trajectory_id=name,
            step=target.step,
            span=span,
            source=target.source,
            type=target.type,
            text=target.text,
            hint_ids=ids,
            gates=HintGates(),
            used=False,
            evidence=target.evidence,
            noticed=target.noticed_step,
            versions=HintVersions(policy=min(turn.policy_versions or [0]), teacher=await model.engine.policy_version()),
        )
        if leak := reference.leak(target.text):
            return hint.model_copy(update={"refused": f"it holds what only the solution has: {leak}"})
        if not fits_in_context(model, turn, ids, span):
            return hint.model_copy(update={"refused": NO_CONTEXT_ROOM})
        question = SpanQuery(turn, target.turn, span, f"coach/{name}/{target.step}")
        found = await score_span(model, question, target.text)
        gates = await self._cheap_gates(question, target.text, found, case, model)
        known = self.statistics.for_type(target.type)
        if found is not None:
            known.record_gap(found.gap)
        refused = "its type is retired: the gap has closed" if known.retired else ""
        update = {"gates": gates, "used": not refused and all_gates_passed(gates), "refused": refused}
        return hint.model_copy(update={**update, **score_fields(found)})

    async def _cheap_gates(
        self, question: SpanQuery, hint: str, found: SpanScores | None, case: EpisodeEvidence, model: TokenModel
    ) -> HintGates:
        looking, first, second = self.settings, None, None
        if "g0" in looking.gates:
            first = await likelihood_gate(model, question, hint, found, looking.delta)
        if "g1" in looking.gates:
            second = await wellformed_gate(model, question, hint, case.tools, looking.limits.turn_tokens)
        gates = [gate.tokens for gate in (first, second) if gate]
        self.cost.tokens += sum(gates) + (found.tokens if found and not first else 0)
        return HintGates(g0=first, g1=second)

    async def _apply_outcome_gate(
        self, ground: EpisodeForker, target: HintCandidate, targets: Sequence[HintCandidate], hint: Hint
    ) -> Hint:
        """After the last gate. Forks are played only where the type has too few of them, or too old ones."""
        known, looking = self.statistics.for_type(target.type), self.settings
        async with self._forking[target.type]:
            if hint.versions.teacher - known.tried_by > looking.versions:
                known.trial = ForkTrial()
            pairs = -(-max(0, looking.forks - known.trial.forks) // 2)
            if pairs:
                known.trial += await run_fork_trial(ground, target, targets, pairs)
                known.tried_by = hint.versions.teacher
        gate = outcome_gate(known.trial, looking.forks, looking.confidence)
        gates = hint.gates.model_copy(update={"g2": gate})
        return hint.model_copy(update={"gates": gates, "used": all_gates_passed(gates)})

    @asynccontextmanager
    async def _forker(self, episode: Episode, model: TokenModel, name: str) -> AsyncIterator[EpisodeForker]:
        looking = self.settings
        async with replay_for_forks(episode, model, looking.limits, looking.temperature, f"coach/{name}") as ground:
            try:
                yield ground
            finally:
                self.cost.forks += ground.cost.forks
                self.cost.tokens += ground.cost.tokens


def _tokens(case: EpisodeEvidence, target: HintCandidate) -> TurnTokens:
    turn = case.turn_at_step(target.step)
    tokens = turn.step.tokens() if turn else None
    if tokens is None:
        raise BadInput(f"step {target.step} has no token ids on record, so that no hint can be spliced before it")
    return tokens
