"""What a warm start learns from: experts at work in worlds, and single turns that follow a hint.

Experts go through the same loop as policies, in the ids of the policy's own dialect, so that what is imitated is token
by token what would be sampled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from gametape.agent.episode import Episode, rollout_config_for, run_episode
from gametape.agent.limits import RolloutLimits
from gametape.coach.hints import FIXED_HINTS
from gametape.core.messages import GenerateRequest, Generation, Sampling, TokenUsage, WeightUpdate
from gametape.core.token_segments import TokenSegment
from gametape.core.tokens import TurnTokens
from gametape.engines.chat_formats.protocol import ChatFormat, insert_hint
from gametape.engines.conversation import Call
from gametape.engines.token_conversation import TokenModel
from gametape.tasks.worlds.experts import Expert, ExpertTurn, script_episode
from gametape.tasks.worlds.plan import WorldAction
from gametape.tasks.worlds.rules import DEMANDS, PRACTICE_MARKINGS, SHARED_RULES, rule_text
from gametape.tasks.worlds.tools import action_arguments
from gametape.tasks.worlds.world import World

_WINDOW = 1 << 20
GENERAL = (*sorted(FIXED_HINTS), "avoid : no such name", "avoid : no value")
"""Hints that say nothing about the thing at hand."""


@dataclass(frozen=True)
class Demonstration:
    """An expert's episode: what it did about which job, and how the loop recorded it."""

    acts: Sequence[ExpertTurn]
    episode: Episode


@dataclass(frozen=True)
class _ScriptedPolicy:
    """An `Engine` that answers the n-th question with the n-th turn."""

    turns: Sequence[list[int]]

    async def generate(self, request: GenerateRequest) -> Generation:
        ids = self.turns[request.turn]
        return Generation(
            request_id=request.request_id,
            completion_ids=ids,
            logprobs=[0.0] * len(ids),
            policy_versions=[0] * len(ids),
            finish="stop",
            usage=TokenUsage(prompt_tokens=len(request.prompt_ids), completion_tokens=len(ids)),
        )

    async def update_weights(self, update: WeightUpdate) -> None:
        raise NotImplementedError("what an expert says is written down")

    async def policy_version(self) -> int:
        return 0


async def demonstrate(world: World, expert: Expert, dialect: ChatFormat, seed: int = 0) -> Demonstration:
    """Play a world as an expert does; `segments` of the steps is what to imitate."""
    acts = script_episode(world, expert, seed)
    setting = rollout_config_for(world, expert_policy(acts, dialect), Sampling(), RolloutLimits(turns=len(acts)))
    return Demonstration(acts, await run_episode(world, setting))


def expert_policy(acts: Sequence[ExpertTurn], dialect: ChatFormat) -> TokenModel:
    """A model that says what an expert has done."""
    return TokenModel("expert", _ScriptedPolicy([_written(dialect, act.action) for act in acts]), dialect, _WINDOW)


def hinted_turns(shown: Demonstration, dialect: ChatFormat, rng: Random, made_up: float = 0.0) -> list[TokenSegment]:
    """At each turn: a hint, spliced before it, and the call that obeys it. Only the call is to be imitated.

    At a marked thing the hint is a rule made up anew each time, so that only reading helps. At others it is whatever a
    coach may say that changes nothing there: the convention, a rule for other things, or something general. No hint
    names a shared rule; where one applies, the hint is a general one, and what the expert did is to be done, but for a
    share of `made_up` in which it is any other rule.
    """
    turns = [step.tokens() for step in shown.episode.steps if step.source == "agent"]
    pairs = zip(shown.acts, turns, strict=True)
    return [_hinted(turn, dialect, *_practised(act, rng, made_up)) for act, turn in pairs if turn is not None]


def _practised(act: ExpertTurn, rng: Random, made_up: float) -> tuple[str, WorldAction]:
    """A hint, and what is done after it."""
    job, demand = act.job, rng.choice(DEMANDS)
    if job.marking in SHARED_RULES:
        if not made_up or rng.random() >= made_up:
            return rng.choice(GENERAL), act.action
        demand = rng.choice([other for other in DEMANDS if other != SHARED_RULES[job.marking]])
    if job.marking:
        return job.hint(demand), job.action_for(demand)
    convention = f"rule : {rule_text('plain', job.kind, job.default_action.tool)}"
    elsewhere = f"rule : {rule_text(rng.choice(PRACTICE_MARKINGS), job.kind, demand)}"
    return rng.choice((convention, elsewhere, rng.choice(GENERAL))), job.correct_action


def _hinted(turn: TurnTokens, dialect: ChatFormat, hint: str, move: WorldAction) -> TokenSegment:
    prompt = insert_hint(dialect, turn.prompt_ids, hint)
    written = _written(dialect, move)
    segment = TokenSegment()
    segment.append_turn(
        TurnTokens(prompt_ids=prompt, completion_ids=written, loss_mask=[1] * len(written)), step=1, copied=False
    )
    return segment


def _written(dialect: ChatFormat, move: WorldAction) -> list[int]:
    return dialect.encode_call(Call(move.tool, action_arguments(move)))
