"""The coach: looks at a finished rollout and says where it went wrong, what to say there, and whether that helps."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from gametape.agent.limits import Limits
from gametape.agent.playing import Played
from gametape.coach.bisection import decisive_turn
from gametape.coach.forking import Cost, Ground, reopened
from gametape.coach.gates import DELTA, g0, g1
from gametape.coach.hinted_engine import hint_ids
from gametape.coach.hints import NO_REFERENCE, Reference
from gametape.coach.locating import located, spanned
from gametape.coach.scoring import Question, Scored, scored
from gametape.coach.statistics import Statistics
from gametape.coach.storing import NO_ROOM, columns, fits, passed
from gametape.coach.target import Target
from gametape.coach.turns import Alarm, Case, case_of
from gametape.coach.verified import CONFIDENCE, FORKS, Trial, g2, tried
from gametape.core.errors import BadInput
from gametape.core.hint import Gates, Hint, HintVersions
from gametape.core.tokens import TurnTokens
from gametape.core.verdict import Flag
from gametape.engines.token_conversation import TokenModel

GateName = Literal["g0", "g1", "g2"]
Source = Callable[[Case], Sequence[Target]]


@dataclass(frozen=True)
class Looking:
    """How closely the coach looks. The first gate alone needs two readings of a turn; `g2` and `bisect` play on."""

    gates: frozenset[GateName] = frozenset({"g0"})
    delta: float = DELTA
    forks: int = FORKS
    confidence: float = CONFIDENCE
    versions: int = 100
    """For how many updates of the weights forks are worth anything."""
    bisect: bool = False
    """Look for the decisive turn of failed rollouts in which nothing shows it."""
    bisection_forks: int = 8
    """At each turn that is looked at."""
    temperature: float = 1.0
    """Of the policy, in forks."""
    limits: Limits = field(default_factory=Limits)


class Coach:
    """`statistics` outlives a look: forks are pooled by type, and types retire. `cost` is all that looking took, in
    tokens read or sampled, and in forks."""

    def __init__(self, looking: Looking | None = None, statistics: Statistics | None = None) -> None:
        self.looking = looking or Looking()
        self.statistics = statistics or Statistics()
        self.cost = Cost()
        self._forking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By type: looks at the same time share their forks."""

    async def look(
        self,
        played: Played,
        model: TokenModel,
        name: str,
        reference: Reference = NO_REFERENCE,
        given: Sequence[Target] = (),
        sources: Sequence[Source] = (),
        flags: Sequence[Flag] = (),
        alarms: Sequence[Alarm] = (),
    ) -> list[Hint]:
        """Every target of a rollout with what was decided about it, in the order of turns. `name` is the trajectory's.

        A `given` target goes before whatever is found at its turn, and what `sources` (a judge) find comes last.
        Targets whose turn has no ids on record are left out.
        """
        case = case_of(played, flags, alarms)
        found = {target.turn: target for source in sources for target in source(case)}
        found |= {target.turn: target for target in [*located(case), *given]}
        if not found and self.looking.bisect and played.judged and not played.judged.passed:
            found = await self._decisive(played, model, name, case)
        every = [spanned(found[turn], case, model.dialect) for turn in sorted(found)]
        targets = [target for target in every if target.span]
        hints = await asyncio.gather(*(self._weighed(target, case, model, name, reference) for target in targets))
        if "g2" in self.looking.gates and any(hint.used for hint in hints):
            async with self._ground(played, model, name) as ground:
                hints = [
                    await self._verified(ground, target, targets, hint) if hint.used else hint
                    for target, hint in zip(targets, hints, strict=True)
                ]
        for hint in hints:
            self.statistics.note(hint.type, hint.gates, hint.used)
        return list(hints)

    async def _decisive(self, played: Played, model: TokenModel, name: str, case: Case) -> dict[int, Target]:
        async with self._ground(played, model, name) as ground:
            target = await decisive_turn(ground, case.tools, self.looking.bisection_forks)
        return {target.turn: target} if target else {}

    async def _weighed(self, target: Target, case: Case, model: TokenModel, name: str, reference: Reference) -> Hint:
        """After the cheap gates; used for now if it has passed those that were asked for."""
        turn = _tokens(case, target)
        span = target.span or (0, len(turn.completion_ids))
        ids = hint_ids(model.dialect, turn.prompt_ids, target.hint)
        hint = Hint(
            trajectory_id=name,
            step=target.step,
            span=span,
            source=target.source,
            type=target.type,
            text=target.hint,
            hint_ids=ids,
            gates=Gates(),
            used=False,
            evidence=target.evidence,
            noticed=target.noticed,
            versions=HintVersions(policy=min(turn.policy_versions or [0]), teacher=await model.engine.policy_version()),
        )
        if leak := reference.leak(target.hint):
            return hint.model_copy(update={"refused": f"it holds what only the solution has: {leak}"})
        if not fits(model, turn, ids, span):
            return hint.model_copy(update={"refused": NO_ROOM})
        question = Question(turn, target.turn, span, f"coach/{name}/{target.step}")
        found = await scored(model, question, target.hint)
        gates = await self._cheap(question, target.hint, found, case, model)
        known = self.statistics.of(target.type)
        if found is not None:
            known.measured(found.gap)
        refused = "its type is retired: the gap has closed" if known.retired else ""
        update = {"gates": gates, "used": not refused and passed(gates), "refused": refused}
        return hint.model_copy(update={**update, **columns(found)})

    async def _cheap(self, question: Question, hint: str, found: Scored | None, case: Case, model: TokenModel) -> Gates:
        looking, first, second = self.looking, None, None
        if "g0" in looking.gates:
            first = await g0(model, question, hint, found, looking.delta)
        if "g1" in looking.gates:
            second = await g1(model, question, hint, case.tools, looking.limits.turn_tokens)
        gates = [gate.tokens for gate in (first, second) if gate]
        self.cost.tokens += sum(gates) + (found.tokens if found and not first else 0)
        return Gates(g0=first, g1=second)

    async def _verified(self, ground: Ground, target: Target, targets: Sequence[Target], hint: Hint) -> Hint:
        """After the last gate. Forks are played only where the type has too few of them, or too old ones."""
        known, looking = self.statistics.of(target.type), self.looking
        async with self._forking[target.type]:
            if hint.versions.teacher - known.tried_by > looking.versions:
                known.trial = Trial()
            pairs = -(-max(0, looking.forks - known.trial.forks) // 2)
            if pairs:
                known.trial += await tried(ground, target, targets, pairs)
                known.tried_by = hint.versions.teacher
        gate = g2(known.trial, looking.forks, looking.confidence)
        gates = hint.gates.model_copy(update={"g2": gate})
        return hint.model_copy(update={"gates": gates, "used": passed(gates)})

    @asynccontextmanager
    async def _ground(self, played: Played, model: TokenModel, name: str) -> AsyncIterator[Ground]:
        looking = self.looking
        async with reopened(played, model, looking.limits, looking.temperature, f"coach/{name}") as ground:
            try:
                yield ground
            finally:
                self.cost.forks += ground.cost.forks
                self.cost.tokens += ground.cost.tokens


def _tokens(case: Case, target: Target) -> TurnTokens:
    turn = case.at(target.step)
    tokens = turn.step.tokens() if turn else None
    if tokens is None:
        raise BadInput(f"step {target.step} has no token ids on record, so that no hint can be spliced before it")
    return tokens
