"""The coach: annotates a finished rollout with hints, each for one turn, and measures whether they help."""

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
from gametape.coach.fork_pair import ForkPair
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
from gametape.coach.statistics import AuthorStatistics, HintStatistics
from gametape.coach.writers.protocol import HintWriter, write_hint
from gametape.core.errors import BadInput
from gametape.core.hint import Hint, HintGates, HintVersions
from gametape.core.tokens import TurnTokens
from gametape.core.verdict import Flag
from gametape.engines.token_conversation import TokenModel

_ROLLOUTS_WITH_FORKS = 16
"""Of so many, the last ones, forks are kept to be shown."""
GateName = Literal["g0", "g1", "g2"]
CandidateSource = Callable[[EpisodeEvidence], Sequence[HintCandidate]]


@dataclass(frozen=True)
class CoachSettings:
    """How thorough the coach is. The first gate alone needs two readings of a turn; `g2` and `bisect` run forks."""

    gates: frozenset[GateName] = frozenset({"g0"})
    delta: float = MIN_LOGPROB_DROP
    forks: int = MIN_FORKS
    confidence: float = CONFIDENCE
    versions: int = 100
    """For how many updates of the weights the results of forks are used."""
    bisect: bool = False
    """Search for the decisive turn of failed rollouts by forks, where no message shows it."""
    bisection_forks: int = 8
    """Forks at each turn of the bisection."""
    temperature: float = 1.0
    """The sampling temperature in forks."""
    limits: RolloutLimits = field(default_factory=RolloutLimits)
    reads_targets: bool = True
    """Read every target with its hint and without it, which measures the gap of its type. Where somebody else reports
    gaps, only gates need readings, and now and then a type that is retired."""


_PROBED = 8
"""One in so many hints of a retired type is read although nothing else needs it: its gap may open again."""


class Coach:
    """`statistics` is shared by all rollouts: forks are pooled by type, and types retire. `authors` counts the hints of
    each author, and `cost` the tokens that annotations read or sampled, and the forks."""

    def __init__(self, settings: CoachSettings | None = None, statistics: HintStatistics | None = None) -> None:
        self.settings = settings or CoachSettings()
        self.statistics = statistics or HintStatistics()
        self.authors: dict[str, AuthorStatistics] = {}
        self.cost = ForkCost()
        self._pairs: dict[str, list[ForkPair]] = {}
        self._forking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By type: annotations at the same time share their forks."""

    async def annotate(
        self,
        episode: Episode,
        model: TokenModel,
        trajectory_id: str,
        reference: LeakChecker = NO_LEAK_CHECK,
        given: Sequence[HintCandidate] = (),
        sources: Sequence[CandidateSource] = (),
        writers: Sequence[HintWriter] = (),
        flags: Sequence[Flag] = (),
        alarms: Sequence[AlarmEvidence] = (),
    ) -> list[Hint]:
        """Every hint for a rollout with the result of its gates, in the order of turns.

        At one turn a `given` candidate comes first, then those of the record, then those of `sources` (a judge).
        Candidates whose turn has no recorded ids are left out. The first of `writers` that has words for what the
        record shows replaces the message; without any the message itself is the hint.
        """
        evidence = collect_evidence(episode, flags, alarms)
        by_turn = {candidate.turn: candidate for source in sources for candidate in source(evidence)}
        by_turn |= {candidate.turn: candidate for candidate in [*locate_candidates(evidence), *given]}
        if not by_turn and self.settings.bisect and episode.score and not episode.score.passed:
            by_turn = await self._bisect(episode, model, trajectory_id, evidence)
        located = [with_action_span(by_turn[turn], evidence, model.chat_format) for turn in sorted(by_turn)]
        candidates = await self._write([one for one in located if one.span], evidence, writers, trajectory_id)
        hints = await asyncio.gather(
            *(self._apply_cheap_gates(candidate, evidence, model, trajectory_id, reference) for candidate in candidates)
        )
        if "g2" in self.settings.gates and any(hint.used for hint in hints):
            async with self._forker(episode, model, trajectory_id) as forker:
                hints = [
                    await self._apply_outcome_gate(forker, candidate, candidates, hint) if hint.used else hint
                    for candidate, hint in zip(candidates, hints, strict=True)
                ]
        for hint in hints:
            self.statistics.record(hint.type, hint.gates, hint.used)
            self.authors.setdefault(hint.author, AuthorStatistics()).record(hint)
        return list(hints)

    async def _write(
        self,
        candidates: Sequence[HintCandidate],
        evidence: EpisodeEvidence,
        writers: Sequence[HintWriter],
        name: str,
    ) -> list[HintCandidate]:
        written = await asyncio.gather(
            *(write_hint(candidate, evidence, writers, f"coach/{name}") for candidate in candidates)
        )
        self.cost.tokens += sum(tokens for _, tokens in written)
        return [candidate for candidate, _ in written]

    async def _bisect(
        self, episode: Episode, model: TokenModel, name: str, evidence: EpisodeEvidence
    ) -> dict[int, HintCandidate]:
        async with self._forker(episode, model, name) as forker:
            candidate = await decisive_turn(forker, evidence.tools, self.settings.bisection_forks)
        return {candidate.turn: candidate} if candidate else {}

    async def _apply_cheap_gates(
        self, candidate: HintCandidate, evidence: EpisodeEvidence, model: TokenModel, name: str, reference: LeakChecker
    ) -> Hint:
        """The hint after the cheap gates; `used` for now if it passed those that were run."""
        turn = _tokens(evidence, candidate)
        span = candidate.span or (0, len(turn.completion_ids))
        ids = hint_ids(model.chat_format, turn.prompt_ids, candidate.text)
        hint = Hint(
            trajectory_id=name,
            step=candidate.step,
            span=span,
            source=candidate.source,
            type=candidate.type,
            text=candidate.text,
            hint_ids=ids,
            gates=HintGates(),
            used=False,
            evidence=candidate.evidence,
            author=candidate.author,
            noticed=candidate.noticed_step,
            versions=HintVersions(policy=min(turn.policy_versions or [0]), teacher=await model.engine.policy_version()),
        )
        if leak := reference.leak(candidate.text):
            return hint.model_copy(update={"refused": f"it holds what only the solution has: {leak}"})
        if not fits_in_context(model, turn, ids, span):
            return hint.model_copy(update={"refused": NO_CONTEXT_ROOM})
        query = SpanQuery(turn, candidate.turn, span, f"coach/{name}/{candidate.step}")
        type_statistics = self.statistics.for_type(candidate.type)
        probed = type_statistics.retired and type_statistics.located % _PROBED == 0
        wanted = self.settings.reads_targets or self.settings.gates or probed
        scores = await score_span(model, query, candidate.text) if wanted else None
        gates = await self._cheap_gates(query, candidate.text, scores, evidence, model)
        if scores is not None:
            type_statistics.record_gap(scores.gap)
        refused = "its type is retired: the gap has closed" if type_statistics.retired else ""
        update = {"gates": gates, "used": not refused and all_gates_passed(gates), "refused": refused}
        return hint.model_copy(update={**update, **score_fields(scores)})

    async def _cheap_gates(
        self, query: SpanQuery, hint: str, scores: SpanScores | None, evidence: EpisodeEvidence, model: TokenModel
    ) -> HintGates:
        settings, likelihood, wellformed = self.settings, None, None
        if "g0" in settings.gates:
            likelihood = await likelihood_gate(model, query, hint, scores, settings.delta)
        if "g1" in settings.gates:
            wellformed = await wellformed_gate(model, query, hint, evidence.tools, settings.limits.turn_tokens)
        tokens = sum(gate.tokens for gate in (likelihood, wellformed) if gate)
        self.cost.tokens += tokens + (scores.tokens if scores and not likelihood else 0)
        return HintGates(g0=likelihood, g1=wellformed)

    async def _apply_outcome_gate(
        self, forker: EpisodeForker, candidate: HintCandidate, candidates: Sequence[HintCandidate], hint: Hint
    ) -> Hint:
        """The hint after the last gate. Forks are run only where the type has too few of them, or too old ones."""
        type_statistics, settings = self.statistics.for_type(candidate.type), self.settings
        async with self._forking[candidate.type]:
            if hint.versions.teacher - type_statistics.tried_by > settings.versions:
                type_statistics.trial = ForkTrial()
            pairs = -(-max(0, settings.forks - type_statistics.trial.forks) // 2)
            if pairs:
                type_statistics.trial += await run_fork_trial(forker, candidate, candidates, pairs)
                type_statistics.tried_by = hint.versions.teacher
        gate = outcome_gate(type_statistics.trial, settings.forks, settings.confidence)
        gates = hint.gates.model_copy(update={"g2": gate})
        return hint.model_copy(update={"gates": gates, "used": all_gates_passed(gates)})

    def forks_of(self, trajectory_id: str) -> list[ForkPair]:
        """Forks of one of the last rollouts, a pair for each hint that was tried on it."""
        return self._pairs.get(trajectory_id, [])

    def _keep_pairs(self, name: str, pairs: list[ForkPair]) -> None:
        if pairs:
            self._pairs[name] = pairs
        while len(self._pairs) > _ROLLOUTS_WITH_FORKS:
            del self._pairs[next(iter(self._pairs))]

    @asynccontextmanager
    async def _forker(self, episode: Episode, model: TokenModel, name: str) -> AsyncIterator[EpisodeForker]:
        settings = self.settings
        async with replay_for_forks(episode, model, settings.limits, settings.temperature, f"coach/{name}") as forker:
            try:
                yield forker
            finally:
                self._keep_pairs(name, forker.pairs)
                self.cost.forks += forker.cost.forks
                self.cost.tokens += forker.cost.tokens


def _tokens(evidence: EpisodeEvidence, candidate: HintCandidate) -> TurnTokens:
    turn = evidence.turn_at_step(candidate.step)
    tokens = turn.step.tokens() if turn else None
    if tokens is None:
        raise BadInput(f"step {candidate.step} has no token ids on record, so that no hint can be spliced before it")
    return tokens
